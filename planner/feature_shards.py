"""The features that a frozen, pretrained tower gives of every image of a training set, in files that stay on the disk.

At full size an image of 256 px has 2 MB of them, so that a training set has hundreds of GB: they are kept in bfloat16,
in which the model computes, in files of some GB, and a step reads only those of its own samples, through the operating
system's cache. The tower then runs once for each image, and not in every step that shows it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor
from transformers.models.qwen3_vl.modeling_qwen3_vl import BaseModelOutputWithDeepstackFeatures

from planner.prompt import PromptConfig, size_images
from planner.tiny.feature_table import by_size
from predimem.core.files import AtomicWrite, write_json
from predimem.core.progress import watched

NOTE = "shard-*.json"
MERGED = "merged"
DTYPE = torch.bfloat16
BATCH = 32  # images in one pass of the tower
SHARD_IMAGES = 1024


class FeatureShards:
    """It is called like `Qwen3VLModel.get_image_features`, with rows, int64 [images], in place of pixel values.

    rows: the row of each image, by its path.

    Raises FileNotFoundError for a folder without features.
    """

    def __init__(self, folder: Path):
        notes = sorted(folder.glob(NOTE))
        if not notes:
            raise FileNotFoundError(f"{folder} holds no features of images: run `predimem train planner` again")
        self.rows: dict[str, int] = {}
        self._places: list[tuple[Path, int]] = []
        self._grids: dict[Path, list[int]] = {}
        self._tokens: dict[Path, int] = {}
        self._files: dict[Path, Any] = {}
        for note in notes:
            said = json.loads(note.read_text())
            path = note.with_suffix(".safetensors")
            self._grids[path], self._tokens[path] = said["grid_thw"], said["tokens"]
            self._keys: list[str] = said["keys"]
            self.rows.update({name: len(self.rows) + i for i, name in enumerate(said["images"])})
            self._places += [(path, i) for i in range(len(said["images"]))]

    def __len__(self) -> int:
        return len(self.rows)

    def grid_thw(self, row: int) -> list[int]:
        """The grid of an image."""
        return self._grids[self._places[row][0]]

    def tokens(self, row: int) -> int:
        """How many tokens an image has."""
        return self._tokens[self._places[row][0]]

    def __call__(self, rows: Tensor, *_: Any, **__: Any) -> Any:
        """The features of these images, bfloat16 on the device of `rows`, one tensor [tokens, Z] for each."""
        read = [self._read(row) for row in rows.tolist()]
        on_device = [[features.to(rows.device, non_blocking=True) for features in image] for image in read]
        merged, *deepstack = (list(level) for level in zip(*on_device, strict=True))
        features: dict[str, Any] = {"pooler_output": merged, "deepstack_features": deepstack}
        return BaseModelOutputWithDeepstackFeatures(**features)

    def _read(self, row: int) -> list[Tensor]:
        path, index = self._places[row]
        if path not in self._files:  # opened in the process that reads: a file cannot go to another one
            self._files[path] = safe_open(path, framework="pt")
        return [self._files[path].get_slice(key)[index] for key in self._keys]

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_files": {}}


def write_shards(
    folder: Path,
    paths: Iterable[str],
    model: Any,
    image_processor: Any,
    prompt: PromptConfig,
    shard_images: int = SHARD_IMAGES,
) -> int:
    """Add the features of the images at `paths` that the folder lacks; returns how many they were.

    Each file is written whole, so that an interrupted call goes on behind the last one. It holds images of one size.

    model: a `Qwen3VLModel`, in any number format, on any device. prompt: sizes the images, as for an answer.
    """
    folder.mkdir(parents=True, exist_ok=True)
    notes = sorted(folder.glob(NOTE))
    known = {name for note in notes for name in json.loads(note.read_text())["images"]}
    groups = by_size(name for name in dict.fromkeys(paths) if name not in known)
    files = [names[first : first + shard_images] for names in groups for first in range(0, len(names), shard_images)]
    for number, names in watched(enumerate(files), len(files), "files", "features of the images"):
        batches = (names[start : start + BATCH] for start in range(0, len(names), BATCH))
        parts, grids = zip(*(_features(batch, model, image_processor, prompt) for batch in batches), strict=True)
        tensors = {key: torch.cat([part[key] for part in parts]) for key in parts[0]}
        path = folder / f"shard-{len(notes) + number:05d}.safetensors"
        with AtomicWrite(path) as partial:
            save_file(tensors, partial)
        keys = [MERGED, *sorted(key for key in tensors if key != MERGED)]
        note = {"images": names, "grid_thw": grids[0], "tokens": tensors[MERGED].shape[1], "keys": keys}
        write_json(path.with_suffix(".json"), note)  # last: a file without its note does not count
    return sum(map(len, files))


def is_sharded(folder: Path) -> bool:
    """Whether a folder holds features in this form, and not in that of a tower of our own."""
    return any(folder.glob(NOTE))


def shard_bytes(images: int, tokens: int, width: int, deepstack_levels: int) -> int:
    """How much space the features of so many images take on the disk."""
    return images * tokens * width * (1 + deepstack_levels) * DTYPE.itemsize


@torch.no_grad()
def _features(
    names: Sequence[str], model: Any, image_processor: Any, prompt: PromptConfig
) -> tuple[dict[str, Tensor], list[int]]:
    """Each [images, tokens, Z], on the CPU, and the grid of these images, which have one size."""
    images = [np.asarray(Image.open(name).convert("RGB")) for name in names]
    inputs = image_processor(images=size_images(images, prompt), do_resize=False, return_tensors="pt")
    output = model.get_image_features(
        inputs["pixel_values"].to(model.device, model.dtype),
        inputs["image_grid_thw"].to(model.device),
        return_dict=True,
    )
    levels = {MERGED: output.pooler_output} | {f"deepstack{i}": f for i, f in enumerate(output.deepstack_features)}
    features = {key: torch.stack(tuple(level)).to("cpu", DTYPE).contiguous() for key, level in levels.items()}
    return features, inputs["image_grid_thw"][0].tolist()

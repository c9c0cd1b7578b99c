"""A table of the features that a frozen vision tower gives of every image of a training set.

The table is computed once and kept beside the tower. To read an image, cut it into patches and run the tower over it
costs a tiny model's training several times what its language model costs, and every sample shows ten to twenty images
that other samples, and trainings with another memory, show as well. With the table a sample only names its rows.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from safetensors.torch import load_file, save_file
from torch import Tensor
from transformers.models.qwen3_vl.modeling_qwen3_vl import BaseModelOutputWithDeepstackFeatures

from predimem.core.files import AtomicWrite, write_json
from predimem.core.progress import watched

BATCH = 64
MERGED = "merged"


class FeatureTable:
    """It is called like `Qwen3VLModel.get_image_features`, with rows, int64 [images], in place of pixel values.

    rows: the row of each image, by its path.
    """

    def __init__(self, folder: Path):
        parts = [(json.loads(p.with_suffix(".json").read_text()), load_file(p)) for p in _shards(folder)]
        if not parts:
            raise FileNotFoundError(f"{folder} holds no features of images: run `predimem train planner` again")
        names = (name for note, _ in parts for name in note["pictures"])
        self.rows = {name: row for row, name in enumerate(names)}
        self._grids: list[list[int]] = [note["grid_thw"] for note, _ in parts]
        self._features = [tensors for _, tensors in parts]
        self._levels = [MERGED, *sorted(key for key in parts[0][1] if key != MERGED)]
        self._places = [(part, i) for part, (note, _) in enumerate(parts) for i in range(len(note["pictures"]))]

    def __len__(self) -> int:
        return len(self.rows)

    def grid_thw(self, row: int) -> list[int]:
        """The grid of an image."""
        return self._grids[self._places[row][0]]

    def tokens(self, row: int) -> int:
        """How many tokens an image has."""
        return self._features[self._places[row][0]][MERGED].shape[1]

    def __call__(self, rows: Tensor, *_: Any, **__: Any) -> Any:
        """The features of these images, float32, one tensor [tokens, Z] for each."""
        places = [self._places[row] for row in rows.tolist()]
        merged, *deepstack = ([self._features[part][key][i].float() for part, i in places] for key in self._levels)
        features: dict[str, Any] = {"pooler_output": merged, "deepstack_features": deepstack}
        return BaseModelOutputWithDeepstackFeatures(**features)


def add_features(folder: Path, paths: Iterable[str], model: Any, image_processor: Any) -> int:
    """Add to the table in `folder` those of the images at `paths` that it lacks; returns how many they were.

    Each call that adds something writes one more file for each size of images, atomically.

    model: a `Qwen3VLModel` with the tower that made the rest of the table.
    """
    folder.mkdir(parents=True, exist_ok=True)
    known = {name for p in _shards(folder) for name in json.loads(p.with_suffix(".json").read_text())["pictures"]}
    groups = by_size(name for name in dict.fromkeys(paths) if name not in known)
    batches = [names[first : first + BATCH] for names in groups for first in range(0, len(names), BATCH)]
    computed = watched(batches, len(batches), "batches", "features of the images")
    for names in groups:
        _write_shard(folder, names, computed, model, image_processor)
    return sum(map(len, groups))


def _write_shard(
    folder: Path, names: list[str], batches: Iterator[list[str]], model: Any, image_processor: Any
) -> None:
    """One file with the features of images of one size. batches: theirs come next."""
    found: dict[str, list[Tensor]] = {}
    grid: list[int] = []
    for batch in islice(batches, -(-len(names) // BATCH)):
        images = [np.asarray(Image.open(name)) for name in batch]
        inputs = image_processor(images=images, do_resize=False, return_tensors="pt")
        grid = inputs["image_grid_thw"][0].tolist()
        with torch.no_grad():
            output = model.get_image_features(inputs["pixel_values"], inputs["image_grid_thw"], return_dict=True)
        found.setdefault(MERGED, []).append(torch.stack(tuple(output.pooler_output)).half())
        for layer, features in enumerate(output.deepstack_features):
            found.setdefault(f"deepstack{layer}", []).append(torch.stack(tuple(features)).half())
    path = folder / f"features-{len(_shards(folder)):03d}.safetensors"
    write_json(path.with_suffix(".json"), {"pictures": names, "grid_thw": grid})
    with AtomicWrite(path) as partial:
        save_file({key: torch.cat(parts) for key, parts in found.items()}, partial)


def by_size(paths: Iterable[str]) -> list[list[str]]:
    """The images at these paths, those of one size together, because the tower's batches have one size."""
    groups: dict[tuple[int, int], list[str]] = {}
    for path in paths:
        with Image.open(path) as image:
            groups.setdefault(image.size, []).append(path)
    return list(groups.values())


def images_of(jsonl: Path) -> list[str]:
    """Paths of all images that the samples of a JSONL show, each once."""
    with jsonl.open() as file:
        return list(dict.fromkeys(path for line in file for path in json.loads(line)["images"]))


def _shards(folder: Path) -> list[Path]:
    return sorted(folder.glob("features-*.safetensors"))

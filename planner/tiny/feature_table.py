"""A table of the features that a frozen vision tower gives of every image of a training set.

The table is computed once and kept beside the tower. To read an image, cut it into patches and run the tower over it
costs a tiny model's training several times what its language model costs, and every sample shows ten to twenty images
that other samples, and trainings with another memory, show as well. With the table a sample only names its rows.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor
from transformers.models.qwen3_vl.modeling_qwen3_vl import BaseModelOutputWithDeepstackFeatures

from predimem.core.files import AtomicWrite, write_json
from predimem.core.progress import watched

BATCH = 64


class FeatureTable:
    """It is called like `Qwen3VLModel.get_image_features`, with rows, int64 [images], in place of pixel values.

    rows: the row of each image, by its path.
    grid_thw: the grid of every image; all have one size.
    tokens: how many tokens an image has.
    """

    def __init__(self, folder: Path):
        parts = [(json.loads(p.with_suffix(".json").read_text()), load_file(p)) for p in _shards(folder)]
        if not parts:
            raise FileNotFoundError(f"{folder} holds no features of images: run `predimem train planner` again")
        self.grid_thw: list[int] = parts[0][0]["grid_thw"]
        names = (name for note, _ in parts for name in note["pictures"])
        self.rows = {name: row for row, name in enumerate(names)}
        self._features = {key: torch.cat([tensors[key] for _, tensors in parts]) for key in parts[0][1]}
        self.tokens = self._features["merged"].shape[1]

    def __len__(self) -> int:
        return len(self.rows)

    def __call__(self, rows: Tensor, *_: Any, **__: Any) -> Any:
        """The features of these images, float32, one tensor [tokens, Z] for each."""
        merged = self._features["merged"][rows].float()
        deepstack = [self._features[key][rows].float() for key in sorted(self._features) if key != "merged"]
        features: dict[str, Any] = {"pooler_output": list(merged), "deepstack_features": [list(d) for d in deepstack]}
        return BaseModelOutputWithDeepstackFeatures(**features)


def add_features(folder: Path, paths: Iterable[str], model: Any, image_processor: Any) -> int:
    """Add to the table in `folder` those of the images at `paths` that it lacks; returns how many they were.

    Each call that adds something writes one more file, atomically.

    model: a `Qwen3VLModel` with the tower that made the rest of the table.
    """
    from PIL import Image

    folder.mkdir(parents=True, exist_ok=True)
    shards = list(_shards(folder))
    known = {name for p in shards for name in json.loads(p.with_suffix(".json").read_text())["pictures"]}
    new = [name for name in dict.fromkeys(paths) if name not in known]
    if not new:
        return 0
    found: dict[str, list[Tensor]] = {}
    grids: set[tuple[int, ...]] = set()
    firsts = range(0, len(new), BATCH)
    for first in watched(firsts, len(firsts), "batches", "features of the images"):
        images = [np.asarray(Image.open(name)) for name in new[first : first + BATCH]]
        inputs = image_processor(images=images, do_resize=False, return_tensors="pt")
        grids |= set(map(tuple, inputs["image_grid_thw"].tolist()))
        if len(grids) != 1:
            raise ValueError(f"images of one training have to be of one size, got grids {sorted(grids)}")
        with torch.no_grad():
            output = model.get_image_features(inputs["pixel_values"], inputs["image_grid_thw"], return_dict=True)
        found.setdefault("merged", []).append(torch.stack(tuple(output.pooler_output)).half())
        for layer, features in enumerate(output.deepstack_features):
            found.setdefault(f"deepstack{layer}", []).append(torch.stack(tuple(features)).half())
    path = folder / f"features-{len(shards):03d}.safetensors"
    note = {"pictures": new, "grid_thw": list(grids.pop())}
    write_json(path.with_suffix(".json"), note)
    with AtomicWrite(path) as partial:
        save_file({key: torch.cat(parts) for key, parts in found.items()}, partial)
    return len(new)


def images_of(jsonl: Path) -> list[str]:
    """Paths of all images that the samples of a JSONL show, each once."""
    with jsonl.open() as file:
        return list(dict.fromkeys(path for line in file for path in json.loads(line)["images"]))


def _shards(folder: Path) -> list[Path]:
    return sorted(folder.glob("features-*.safetensors"))

"""What a planner's vision tower makes of pictures, each of them computed once.

From one answer to the next most of the prompt's pictures are the same: keyframes stay for an episode, and the
recent window moves on by a frame.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from torch import Tensor

from planner.prompt import PromptConfig, size_images

Key = tuple[tuple[int, ...], bytes]


@dataclass(frozen=True, eq=False)
class Picture:
    """rows, columns: its tokens in the prompt. merged: [rows * columns, D], what they are replaced by.
    deepstack: for each of the first layers what is added to them, [rows * columns, D]."""

    rows: int
    columns: int
    merged: Tensor
    deepstack: tuple[Tensor, ...]


class PictureReader:
    """Pictures in the order in which they are given, the `capacity` last used ones from memory.

    A picture is known by its bytes, so it does not matter who holds it. Not thread-safe.
    """

    def __init__(self, model: Any, image_processor: Any, prompt: PromptConfig, capacity: int):
        if capacity < 0:
            raise ValueError(f"capacity must not be negative, got {capacity}")
        self._model, self._processor, self._prompt = model, image_processor, prompt
        self._capacity = capacity
        self._known: OrderedDict[Key, Picture] = OrderedDict()
        self.computed = 0  # pictures that went through the tower

    def __len__(self) -> int:
        return len(self._known)

    def __call__(self, images: Sequence[np.ndarray]) -> list[Picture]:
        """images: RGB uint8 [H, W, 3], as the environment gave them."""
        keys: list[Key] = [(image.shape, image.tobytes()) for image in images]
        found = {key: self._known[key] for key in keys if key in self._known}
        new = {key: image for key, image in zip(keys, images, strict=True) if key not in found}
        if new:
            found |= zip(new, self._compute(list(new.values())), strict=True)
        for key in keys:
            self._known[key] = found[key]
            self._known.move_to_end(key)
        while len(self._known) > self._capacity:
            self._known.popitem(last=False)
        return [found[key] for key in keys]

    def _compute(self, images: list[np.ndarray]) -> list[Picture]:
        self.computed += len(images)
        # One by one on the CPU: there a picture's last bits depend on which others share its batch, and an answer
        # must not depend on what was asked before. An accelerator is too slow that way.
        one_by_one = self._model.device.type == "cpu"
        batches = [[image] for image in images] if one_by_one else [images]
        return [picture for batch in batches for picture in self._tower(batch)]

    def _tower(self, images: list[np.ndarray]) -> list[Picture]:
        inputs = self._processor(images=size_images(images, self._prompt), do_resize=False, return_tensors="pt")
        grids = inputs["image_grid_thw"]
        output = self._model.model.get_image_features(
            inputs["pixel_values"].to(self._model.device), grids.to(self._model.device), return_dict=True
        )
        merge = self._model.config.vision_config.spatial_merge_size
        parts = zip(grids.tolist(), output.pooler_output, *output.deepstack_features, strict=True)
        # Clones, since a slice would keep the whole batch.
        return [
            Picture(rows // merge, columns // merge, merged.clone(), tuple(part.clone() for part in deepstack))
            for (_, rows, columns), merged, *deepstack in parts
        ]

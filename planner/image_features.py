"""The features that a planner's vision tower gives of images; each image is computed once.

Most of the prompt's images are the same from one answer to the next: keyframes stay for an episode, and the recent
window moves on by a frame.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from torch import Tensor

from planner.prompt import PromptConfig, size_images


@dataclass(frozen=True, eq=False)
class ImageFeatures:
    """The features of one image.

    rows, columns: how many tokens the image has in the prompt, in each direction.
    merged: [rows * columns, D], the embeddings of these tokens.
    deepstack: for each of the first layers, what is added to these tokens there, [rows * columns, D].
    """

    rows: int
    columns: int
    merged: Tensor
    deepstack: tuple[Tensor, ...]


Timestep = tuple[np.ndarray, ...]  # an image of each camera
Key = tuple[tuple[tuple[int, ...], bytes], ...]


class ImageReader:
    """Gives the features of images, and remembers those of the `capacity` timesteps that were asked for last.

    A timestep is recognised by the bytes of its images, so it does not matter who holds it. The reader is not
    thread-safe.
    """

    def __init__(self, model: Any, image_processor: Any, prompt: PromptConfig, capacity: int):
        if capacity < 0:
            raise ValueError(f"the capacity for timesteps must not be negative, got {capacity}")
        self._model, self._processor, self._prompt = model, image_processor, prompt
        self._capacity = capacity
        self._known: OrderedDict[Key, list[ImageFeatures]] = OrderedDict()
        self.computed = 0  # timesteps that went through the tower

    def __len__(self) -> int:
        return len(self._known)

    def __call__(self, images: Sequence[np.ndarray]) -> list[ImageFeatures]:
        """images: RGB uint8 [H, W, 3], as the environment gave them, camera-minor."""
        cameras = len(self._prompt.cameras)
        steps = [tuple(images[first : first + cameras]) for first in range(0, len(images), cameras)]
        keys: list[Key] = [tuple((image.shape, image.tobytes()) for image in step) for step in steps]
        found = {key: self._known[key] for key in keys if key in self._known}
        new = {key: step for key, step in zip(keys, steps, strict=True) if key not in found}
        if new:
            found |= zip(new, self._compute(list(new.values())), strict=True)
        for key in keys:
            self._known[key] = found[key]
            self._known.move_to_end(key)
        while len(self._known) > self._capacity:
            self._known.popitem(last=False)
        return [image for key in keys for image in found[key]]

    def _compute(self, steps: list[Timestep]) -> list[list[ImageFeatures]]:
        self.computed += len(steps)
        # One by one on the CPU: there an image's last bits depend on which others share its batch, and an answer
        # must not depend on what was asked before. An accelerator is too slow that way.
        if self._model.device.type == "cpu":
            return [self._tower(step) for step in steps]
        images, cameras = self._tower([image for step in steps for image in step]), len(steps[0])
        return [images[first : first + cameras] for first in range(0, len(images), cameras)]

    def _tower(self, images: Sequence[np.ndarray]) -> list[ImageFeatures]:
        inputs = self._processor(images=size_images(images, self._prompt), do_resize=False, return_tensors="pt")
        grids = inputs["image_grid_thw"]
        output = self._model.model.get_image_features(
            inputs["pixel_values"].to(self._model.device), grids.to(self._model.device), return_dict=True
        )
        merge = self._model.config.vision_config.spatial_merge_size
        parts = zip(grids.tolist(), output.pooler_output, *output.deepstack_features, strict=True)
        # Clones, since a slice would keep the whole batch.
        return [
            ImageFeatures(rows // merge, columns // merge, merged.clone(), tuple(part.clone() for part in deepstack))
            for (_, rows, columns), merged, *deepstack in parts
        ]

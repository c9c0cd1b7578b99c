"""The features that a planner's vision tower gives of images; each image is computed once.

Most of the prompt's images are the same from one answer to the next: keyframes stay for an episode, and the recent
window moves on by a frame.
"""

from __future__ import annotations

import hashlib
import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from planner.feature_memory import FeatureMemory, ImageFeatures
from planner.prompt import PromptConfig, size_images


@dataclass(frozen=True, eq=False)
class Picture:
    """An image of a prompt.

    pixels: RGB uint8 [H, W, 3], as the environment gave them.
    number: a hash of shape and pixels, below 0.
    rows, columns: how many tokens the image has in the prompt, in each direction.
    """

    pixels: np.ndarray
    number: int
    rows: int
    columns: int


class ImageReader:
    """Gives the features of images, and remembers them in `memory`.

    An image is recognised by its pixels, so it does not matter who holds it. The reader is not thread-safe.
    """

    def __init__(self, model: Any, image_processor: Any, prompt: PromptConfig, memory: FeatureMemory):
        self._model, self._processor, self._prompt, self.memory = model, image_processor, prompt, memory
        self._cell = prompt.image_patch_size * model.config.vision_config.spatial_merge_size
        self._numbers: dict[int, tuple[weakref.ref[np.ndarray], int]] = {}
        self._grids: dict[tuple[int, ...], tuple[int, int]] = {}
        self.computed = 0  # timesteps that went through the tower

    def pictures(self, images: Sequence[np.ndarray]) -> list[Picture]:
        """The images, RGB uint8 [H, W, 3], recognised but not looked at by the tower."""
        return [Picture(image, self._number(image), *self._grid(image)) for image in images]

    def __call__(self, pictures: Sequence[Picture], robot: str) -> list[ImageFeatures]:
        """The features of whole timesteps, camera-minor. robot: whose memory of features they are kept in."""
        cameras = len(self._prompt.cameras)
        steps = [tuple(pictures[first : first + cameras]) for first in range(0, len(pictures), cameras)]
        keys = [tuple(picture.number for picture in step) for step in steps]
        found = {key: features for key in dict.fromkeys(keys) if (features := self.memory.get(key, robot)) is not None}
        new = {key: step for key, step in zip(keys, steps, strict=True) if key not in found}
        if new:
            for key, features in zip(new, self._compute(list(new.values())), strict=True):
                found[key] = self.memory.put(key, features, robot)
            self.memory.trim()
        return [image for key in keys for image in found[key]]

    def _number(self, image: np.ndarray) -> int:
        """Of an image that nobody can change it is computed once, while the image is in memory."""
        known = self._numbers.get(id(image))
        if known is not None and known[0]() is image:
            return known[1]
        digest = hashlib.blake2b(np.ascontiguousarray(image).data, digest_size=16, person=b"%d,%d" % image.shape[:2])
        number = -1 - int.from_bytes(digest.digest(), "big")
        if not image.flags.writeable and image.base is None:
            place, numbers = id(image), self._numbers
            numbers[place] = (weakref.ref(image, lambda _: numbers.pop(place, None)), number)
        return number

    def _grid(self, image: np.ndarray) -> tuple[int, int]:
        """Rows and columns of an image of this shape."""
        if image.shape not in self._grids:
            (sized,) = size_images([image], self._prompt)
            self._grids[image.shape] = (sized.height // self._cell, sized.width // self._cell)
        return self._grids[image.shape]

    def _compute(self, steps: list[tuple[Picture, ...]]) -> list[list[ImageFeatures]]:
        self.computed += len(steps)
        # One by one on the CPU: there an image's last bits depend on which others share its batch, and an answer
        # must not depend on what was asked before. An accelerator is too slow that way.
        if self._model.device.type == "cpu":
            return [self._tower([picture.pixels for picture in step]) for step in steps]
        images, cameras = self._tower([picture.pixels for step in steps for picture in step]), len(steps[0])
        return [images[first : first + cameras] for first in range(0, len(images), cameras)]

    def _tower(self, images: Sequence[np.ndarray]) -> list[ImageFeatures]:
        inputs = self._processor(images=size_images(images, self._prompt), do_resize=False, return_tensors="pt")
        grids = inputs["image_grid_thw"]
        output = self._model.model.get_image_features(
            inputs["pixel_values"].to(self._model.device), grids.to(self._model.device), return_dict=True
        )
        # Clones, since a slice would keep the whole batch.
        return [
            ImageFeatures(merged.clone(), tuple(part.clone() for part in deepstack))
            for merged, *deepstack in zip(output.pooler_output, *output.deepstack_features, strict=True)
        ]

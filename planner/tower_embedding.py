"""The planner's own frozen vision tower as the embedding of keyframes, for `memory_bank.retrieval` and for searches."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from PIL import Image

from predimem.core.types import Frame
from predimem.core.weight_files import weights_folder, weights_hash

ARENA_PLANNER = "arena-planner"


class TowerEmbedder:
    """Embeds frames of a robot whose cameras the planner knows.

    model: the name of its embeddings in a store; other weights have another one. cameras: whose images it takes.
    """

    def __init__(self, weights: str = ARENA_PLANNER, root: str | None = None) -> None:
        """weights: the folder of a planner below `root`, or below the shipped weights. Raises WeightsError where there
        is none, and PlannerCheckpointError where it cannot be loaded."""
        from planner.decoding import load_planner

        self._folder = weights_folder(root, weights)
        planner = load_planner(self._folder)
        self.embed = planner.embed
        self.cameras = tuple(planner.spec.prompt.cameras)

    @functools.cached_property
    def model(self) -> str:
        return f"{self._folder.name}-{weights_hash(self._folder)[:8]}"

    def query(self, images: Mapping[str, np.ndarray], size: tuple[int, int]) -> np.ndarray:
        """float32 [D] for a search by the images of some cameras, uint8 [H, W, 3]; the other cameras do not count.

        size: [height, width] of the keyframes that are searched; the images are brought to it. Raises ValueError for no
        image, or one of another camera.
        """
        if not images or not set(images) <= set(self.cameras):
            raise ValueError(f"expected images of {' or '.join(self.cameras)}, got {', '.join(images) or 'none'}")
        sized = {camera: _resized(image, size) for camera, image in images.items()}
        any_image = next(iter(sized.values()))
        frame = Frame(0, 0.0, {camera: sized.get(camera, any_image) for camera in self.cameras})
        parts = self.embed([frame])[0].reshape(len(self.cameras), -1)  # one part for each camera: `QwenPlanner.embed`
        return (parts * np.array([[camera in images] for camera in self.cameras])).ravel()


@functools.cache
def tower(weights: str = ARENA_PLANNER, root: str | None = None) -> Callable[[Sequence[Frame]], np.ndarray]:
    """F frames -> float32 [F, D], by `planner.decoding.QwenPlanner.embed`; one in each process. Raises as
    `TowerEmbedder`."""
    return TowerEmbedder(weights, root).embed


def _resized(image: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    if image.shape[:2] == tuple(size):
        return image
    return np.asarray(Image.fromarray(image).resize((size[1], size[0]), Image.Resampling.BICUBIC))

"""Observations as rows of numbers, which all heads read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from predimem.core.types import Frame, MemorySnapshot, Observation

FLAGS = 2  # at the end of a row: whether there is a frame, and whether it is the first of the episode


@dataclass(frozen=True)
class RowLayout:
    """camera, image_shape: the one image, [H, W, 3] pixels; None and empty where there is none. state_dim: D."""

    camera: str | None
    image_shape: tuple[int, ...]
    state_dim: int

    @classmethod
    def of(cls, observation: Observation) -> RowLayout:
        """Raises ValueError for more than one camera."""
        if len(observation.images) > 1:
            raise ValueError(f"expected at most one camera, got {', '.join(observation.images)}")
        camera = next(iter(observation.images), None)
        return cls(camera, observation.images[camera].shape if camera else (), len(observation.state))

    @property
    def pixels(self) -> int:
        return int(np.prod(self.image_shape)) if self.camera else 0

    @property
    def width(self) -> int:
        return self.pixels + self.state_dim + FLAGS

    def row(self, step: int, images: Mapping[str, np.ndarray], state: np.ndarray | None) -> np.ndarray:
        """float32 [width]: the pixels in [0, 1], the state, and the flags. Raises ValueError for another layout."""
        came = len(state) if state is not None else None
        if self.state_dim and came != self.state_dim:
            raise ValueError(
                f"step {step}: expected a state of {self.state_dim} numbers, got {came}; a memory of your own has to "
                "keep the frames that `RecentWindow.add` gives it, which hold the state"
            )
        row = np.empty(self.width, np.float32)
        if self.camera is not None:
            row[: self.pixels] = images[self.camera].reshape(-1)
            row[: self.pixels] /= 255
        if self.state_dim:
            row[self.pixels : -FLAGS] = state
        row[-FLAGS:] = 1, step == 0
        return row

    def of_frame(self, frame: Frame | Observation) -> np.ndarray:
        return self.row(frame.step, frame.images, frame.state)

    def window(self, snapshot: MemorySnapshot, length: int) -> np.ndarray:
        """float32 [length, width]: the recent frames, newest first, and rows of zeros for those before the episode."""
        frames = snapshot.recent[::-1][:length]
        return self._padded([self.of_frame(frame) for frame in frames], length)

    def keyframes(self, snapshot: MemorySnapshot) -> tuple[np.ndarray, np.ndarray]:
        """(float32 [K, width], int64 [K]): the keyframes, and how many steps ago they were."""
        rows = [self.of_frame(frame) for frame in snapshot.keyframes]
        ages = np.array([snapshot.step - frame.step for frame in snapshot.keyframes], np.int64)
        return self._padded(rows, len(rows)), ages

    def _padded(self, rows: Sequence[np.ndarray], length: int) -> np.ndarray:
        block = np.zeros((length, self.width), np.float32)
        for n, row in enumerate(rows):
            block[n] = row
        return block

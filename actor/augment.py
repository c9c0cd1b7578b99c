"""How the images of a batch are changed in training: shifted by whole pixels, and brighter or darker."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, eq=False)
class Change:
    """One change for each of b frames, the same for all of its cameras.

    pad: the largest shift in pixels.
    offsets: int [b, 2], from 0 to 2 · pad: where the shifted image begins, as (x, y), in the padded one.
    gain, offset: float32 [b], of the values around the middle grey.
    """

    pad: int
    offsets: np.ndarray
    gain: np.ndarray
    offset: np.ndarray

    def of(self, frames: slice) -> Change:
        return Change(self.pad, self.offsets[frames], self.gain[frames], self.offset[frames])

    def shift(self, size: int) -> np.ndarray:
        """float [b, 2]: how far what is seen moves, as (u, v) fractions of images of size · size pixels."""
        return (self.pad - self.offsets) / np.array([size, size])

    def apply(self, images: np.ndarray) -> np.ndarray:
        """uint8 [b, C, H, W, 3] to the same."""
        height, width = images.shape[2:4]
        pad = ((0, 0), (0, 0), (self.pad, self.pad), (self.pad, self.pad), (0, 0))
        padded = np.pad(images, pad, mode="edge")
        shifted = np.stack([padded[i, :, y : y + height, x : x + width] for i, (x, y) in enumerate(self.offsets)])
        gain, offset = (values.reshape(-1, 1, 1, 1, 1) for values in (self.gain, self.offset))
        bright = (shifted - np.float32(127.5)) * gain + 127.5 + offset
        return np.clip(bright, 0, 255).round().astype(np.uint8)


def draw_change(rng: np.random.Generator, frames: int, shift_px: int, brightness: float) -> Change:
    offsets = rng.integers(0, 2 * shift_px + 1, size=(frames, 2))
    gain = rng.uniform(1 - brightness, 1 + brightness, frames).astype(np.float32)
    offset = 127.5 * rng.uniform(-brightness / 2, brightness / 2, frames).astype(np.float32)
    return Change(shift_px, offsets, gain, offset)

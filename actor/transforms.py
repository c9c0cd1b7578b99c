"""Numpy transforms between the environment's values and the model's, each beside its inverse.

Where one has `openpi_exact`, it computes what openpi computes, to the last bin and row of pixels. Weights that were
trained by openpi or LeRobot want that; ours were trained without.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from PIL import Image

from actor.normalize import Quantiles

CONSTANT = 1e-4
"""A dimension whose quantiles are closer than this (in physical units) is treated as constant."""
OPENPI_EPSILON = 1e-6
"""What openpi adds to the range of each dimension, so that none is zero."""


@dataclass(frozen=True, eq=False)
class Normalise:
    """[q01, q99] to [-1, 1]; a constant dimension to 0 rather than to amplified noise.

    With `openpi_exact` a constant dimension goes to -1 instead, which is bin 0 of the state, and the result is float64.
    """

    quantiles: Quantiles
    openpi_exact: bool = False

    def __call__(self, values: np.ndarray) -> np.ndarray:
        if self.openpi_exact:
            low, width = _openpi_range(self.quantiles)
            return (values - low) / width * 2.0 - 1.0
        centre, half, constant = _affine(self.quantiles)
        return np.where(constant, 0.0, (values - centre) / half).astype(np.float32)


@dataclass(frozen=True, eq=False)
class Unnormalise:
    """The inverse of `Normalise`; a constant dimension gets its constant whatever the model says."""

    quantiles: Quantiles
    openpi_exact: bool = False

    def __call__(self, values: np.ndarray) -> np.ndarray:
        if self.openpi_exact:
            low, width = _openpi_range(self.quantiles)
            return ((values + 1.0) / 2.0 * width + low).astype(np.float32)
        centre, half, constant = _affine(self.quantiles)
        return (np.where(constant, 0.0, values) * half + centre).astype(np.float32)


@dataclass(frozen=True)
class Discretise:
    """[-1, 1] to the integers 0 ... bins-1, as π0.5 writes the state into the prompt.

    Values outside are clipped. With `openpi_exact` those below the range become -1, as openpi writes them.
    """

    bins: int = 256
    openpi_exact: bool = False

    def __call__(self, values: np.ndarray) -> np.ndarray:
        edges = np.linspace(-1, 1, self.bins + 1)[:-1]
        return np.clip(np.digitize(values, edges) - 1, -1 if self.openpi_exact else 0, self.bins - 1)


@dataclass(frozen=True)
class ToRelative:
    """Absolute actions to actions relative to the state at the start of their chunk.

    entries: for each action the entry of the state that it is relative to; None where it stays absolute.
    """

    entries: tuple[int | None, ...]

    def __call__(self, actions: np.ndarray, state: np.ndarray) -> np.ndarray:
        """actions: float [..., H, A]; state: float [..., D]. Leading axes have to fit each other."""
        return actions - _offsets(self.entries, state)


@dataclass(frozen=True)
class ToAbsolute:
    """The inverse of `ToRelative`."""

    entries: tuple[int | None, ...]

    def __call__(self, actions: np.ndarray, state: np.ndarray) -> np.ndarray:
        return actions + _offsets(self.entries, state)


@dataclass(frozen=True)
class PadActions:
    """Zeros appended to the last axis up to the model's action dimension."""

    dim: int

    def __call__(self, actions: np.ndarray) -> np.ndarray:
        missing = self.dim - actions.shape[-1]
        return np.pad(actions, [(0, 0)] * (actions.ndim - 1) + [(0, missing)])


@dataclass(frozen=True)
class UnpadActions:
    """The inverse of `PadActions`: the environment's action dimensions."""

    dim: int

    def __call__(self, actions: np.ndarray) -> np.ndarray:
        return actions[..., : self.dim]


@dataclass(frozen=True)
class ResizeWithPad:
    """uint8 [H, W, 3] to [size, size, 3], keeping the aspect ratio and centring on black.

    With `openpi_exact` the inner size is rounded as openpi rounds it, which is one row more at 720 x 1280.
    """

    size: int
    openpi_exact: bool = False

    def __call__(self, image: np.ndarray) -> np.ndarray:
        height, width = image.shape[:2]
        if (height, width) == (self.size, self.size):
            return image
        if self.openpi_exact:
            ratio = max(width / self.size, height / self.size)
            inner = int(width / ratio), int(height / ratio)
        else:
            scale = self.size / max(height, width)
            inner = max(1, int(width * scale)), max(1, int(height * scale))
        resized = np.asarray(Image.fromarray(image).resize(inner, Image.Resampling.BILINEAR))
        canvas = np.zeros((self.size, self.size, 3), np.uint8)
        top, left = (self.size - inner[1]) // 2, (self.size - inner[0]) // 2
        canvas[top : top + inner[1], left : left + inner[0]] = resized
        return canvas


def _affine(quantiles: Quantiles) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    low, high = quantiles.q01.astype(np.float64), quantiles.q99.astype(np.float64)
    constant = high - low < CONSTANT
    return (low + high) / 2, np.where(constant, 1.0, (high - low) / 2), constant


def _openpi_range(quantiles: Quantiles) -> tuple[np.ndarray, np.ndarray]:
    """Where the range of each dimension begins, and how wide it is: float64 [D]."""
    low, high = quantiles.q01.astype(np.float64), quantiles.q99.astype(np.float64)
    return low, high - low + OPENPI_EPSILON


def _offsets(entries: tuple[int | None, ...], state: np.ndarray) -> np.ndarray:
    """float [..., 1, A]: what an action is relative to; 0 where it is absolute."""
    offsets = np.zeros((*state.shape[:-1], 1, len(entries)), state.dtype)
    for action, entry in enumerate(entries):
        if entry is not None:
            offsets[..., 0, action] = state[..., entry]
    return offsets

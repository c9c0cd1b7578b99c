"""Numpy transforms between the environment's values and the model's, each beside its inverse."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from PIL import Image

from actor.normalize import Quantiles

CONSTANT = 1e-4
"""A dimension whose quantiles are closer than this (in physical units) is treated as constant."""


@dataclass(frozen=True, eq=False)
class Normalise:
    """[q01, q99] to [-1, 1]; a constant dimension to 0 rather than to amplified noise."""

    quantiles: Quantiles

    def __call__(self, values: np.ndarray) -> np.ndarray:
        centre, half, constant = _affine(self.quantiles)
        return np.where(constant, 0.0, (values - centre) / half).astype(np.float32)


@dataclass(frozen=True, eq=False)
class Unnormalise:
    """The inverse of `Normalise`; a constant dimension gets its constant whatever the model says."""

    quantiles: Quantiles

    def __call__(self, values: np.ndarray) -> np.ndarray:
        centre, half, constant = _affine(self.quantiles)
        return (np.where(constant, 0.0, values) * half + centre).astype(np.float32)


@dataclass(frozen=True)
class Relative:
    """Absolute positions of joints to distances from where the joints are. entries: see `ActorConfig.relative_to`."""

    entries: tuple[int | None, ...]

    def __call__(self, chunks: np.ndarray, state: np.ndarray) -> np.ndarray:
        """chunks: [..., H, A]; state: [..., D], with the same leading axes or with 1 in their place."""
        return (chunks - self._origin(state)).astype(np.float32)

    def inverse(self, chunks: np.ndarray, state: np.ndarray) -> np.ndarray:
        return (chunks + self._origin(state)).astype(np.float32)

    def _origin(self, state: np.ndarray) -> np.ndarray:
        columns = [np.zeros_like(state[..., 0]) if entry is None else state[..., entry] for entry in self.entries]
        return np.stack(columns, -1)[..., None, :]


@dataclass(frozen=True)
class Discretise:
    """[-1, 1] to the integers 0 ... bins-1, as π0.5 writes the state into the prompt.

    Values outside are clipped (openpi leaves -1 below the range, a number that training never saw).
    """

    bins: int = 256

    def __call__(self, values: np.ndarray) -> np.ndarray:
        edges = np.linspace(-1, 1, self.bins + 1)[:-1]
        return np.clip(np.digitize(values, edges) - 1, 0, self.bins - 1)


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
    """uint8 [H, W, 3] to [size, size, 3], keeping the aspect ratio and centring on black."""

    size: int

    def __call__(self, image: np.ndarray) -> np.ndarray:
        height, width = image.shape[:2]
        if (height, width) == (self.size, self.size):
            return image
        scale = self.size / max(height, width)
        inner = (max(1, int(width * scale)), max(1, int(height * scale)))
        resized = np.asarray(Image.fromarray(image).resize(inner, Image.Resampling.BILINEAR))
        canvas = np.zeros((self.size, self.size, 3), np.uint8)
        top, left = (self.size - inner[1]) // 2, (self.size - inner[0]) // 2
        canvas[top : top + inner[1], left : left + inner[0]] = resized
        return canvas


def _affine(quantiles: Quantiles) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    low, high = quantiles.q01.astype(np.float64), quantiles.q99.astype(np.float64)
    constant = high - low < CONSTANT
    return (low + high) / 2, np.where(constant, 1.0, (high - low) / 2), constant

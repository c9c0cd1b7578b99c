"""Painted patterns that nothing in the kitchen has: they take the place of wood, stone, wicker, tiles and floor."""

from __future__ import annotations

import numpy as np

SIDE_PX = 64


def pattern(number: int) -> np.ndarray:
    """uint8 [64, 64, 3], sRGB; it repeats without a seam. Each number from 0 has its kind and its two colours."""
    rng = np.random.default_rng([41, number])
    x, y = np.meshgrid(np.arange(SIDE_PX) / SIDE_PX, np.arange(SIDE_PX) / SIDE_PX)
    copies = int(rng.integers(1, 4))
    kinds = (_stripes, _checks, _dots, _waves, _zigzag)
    share = kinds[int(rng.integers(len(kinds)))](copies * x % 1, copies * y % 1)
    one = rng.uniform(0.15, 0.95, 3)
    other = np.clip(one + rng.choice([-1, 1], 3) * rng.uniform(0.15, 0.35, 3), 0.05, 1.0)
    mixed = share[..., None] * one + (1 - share[..., None]) * other
    return np.round(255 * mixed).astype(np.uint8)


def _stripes(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return ((x + y) % 1 < 0.5).astype(float)


def _checks(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return ((x < 0.5) ^ (y < 0.5)).astype(float)


def _dots(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return (np.hypot(x - 0.5, y - 0.5) < 0.3).astype(float)


def _waves(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return 0.5 + 0.5 * np.sin(2 * np.pi * (y + 0.15 * np.sin(2 * np.pi * x)))


def _zigzag(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return ((y + np.abs(x - 0.5)) % 1 < 0.5).astype(float)

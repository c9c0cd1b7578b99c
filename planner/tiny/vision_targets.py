"""What a tiny vision tower is trained on: frames of episodes, and what every cell of them holds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from planner.crop import Crop, cropped

_LEVELS = 32  # colours are binned to 5 bits a channel
SPOTS = 4  # a cell has so many rows and columns of spots


def sample_frames(
    episodes: Sequence[Any], cameras: Sequence[str], limit: int, rng: np.random.Generator, crop: Crop | None = None
) -> np.ndarray:
    """Up to `limit` images of all cameras, uint8 [N, H, W, 3], drawn without replacement, and cropped."""
    taken = [(e, t) for e in episodes for t in np.flatnonzero(e.image_steps)]
    chosen = rng.permutation(len(taken) * len(cameras))[:limit]

    def image(number: int) -> np.ndarray:
        (episode, step), camera = taken[number // len(cameras)], cameras[number % len(cameras)]
        return cropped(episode.images[camera][step], camera, crop or {})

    images = np.empty((len(chosen), *image(0).shape), np.uint8)
    for row, number in enumerate(chosen):
        images[row] = image(number)
    return images


def fit_palette(frames: np.ndarray, size: int) -> np.ndarray:
    """[size, 3] float32 RGB that cover the colours of uint8 [N, H, W, 3], rare ones included.

    Farthest-point selection (each new colour is the one farthest from all so far), then three rounds of
    k-means. Colours of fewer than N / 10 pixels in all are left out as noise.
    """
    bins = (frames // (256 // _LEVELS)).reshape(-1, 3).astype(np.int64)
    counts = np.bincount(bins @ (_LEVELS**2, _LEVELS, 1), minlength=_LEVELS**3)
    used = np.flatnonzero(counts >= max(1, len(frames) // 10))
    colours = np.stack([used // _LEVELS**2, used // _LEVELS % _LEVELS, used % _LEVELS], 1) + 0.5
    colours = (colours * (256 // _LEVELS)).astype(np.float32)
    weights = np.sqrt(counts[used])
    centres = colours[[np.argmax(weights)]]
    for _ in range(min(size, len(colours)) - 1):
        distance = ((colours[:, None] - centres[None]) ** 2).sum(-1).min(1)
        centres = np.concatenate([centres, colours[[np.argmax(distance)]]])
    for _ in range(3):
        nearest = _nearest(colours, centres)
        for k in np.unique(nearest):
            mine = nearest == k
            centres[k] = np.average(colours[mine], axis=0, weights=weights[mine])
    return centres


class CellTargets:
    """Gives what each cell of an image holds: thumbnails and palette counts, for square cells of `cell` px."""

    def __init__(self, palette: np.ndarray, cell: int, present_pixels: int):
        step = 256 // _LEVELS
        axis = (np.arange(_LEVELS) + 0.5) * step
        grid = np.stack(np.meshgrid(axis, axis, axis, indexing="ij"), -1).reshape(-1, 3).astype(np.float32)
        self._table = torch.from_numpy(_nearest(grid, palette))
        self._size, self._cell, self._present = len(palette), cell, present_pixels

    def __call__(self, frames: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """uint8 [N, 3, H, W] -> per cell, row-major: thumbnails [N, cells, 48] in -1..1, log counts
        [N, cells, K], presence [N, cells, K] (0 or 1)."""
        count = len(frames)
        rows, columns = self._shape(frames)
        small = F.avg_pool2d(frames.float() / 127.5 - 1.0, self._cell // 4)
        small = small.view(count, 3, rows, 4, columns, 4).permute(0, 2, 4, 1, 3, 5)
        colour = self._colours(frames).view(count, rows, self._cell, columns, self._cell).permute(0, 1, 3, 2, 4)
        counts = self._counts(colour.reshape(count, rows * columns, -1))
        present = (counts >= self._present).float()
        return small.reshape(count, rows * columns, 48), torch.log1p(counts), present

    def in_spots(self, frames: Tensor) -> Tensor:
        """uint8 [N, 3, H, W] -> presence in each of a cell's spots, row-major, [N, cells, SPOTS^2 K] (0 or 1)."""
        count, side = len(frames), self._cell // SPOTS
        rows, columns = self._shape(frames)
        colour = self._colours(frames).view(count, rows, SPOTS, side, columns, SPOTS, side)
        counts = self._counts(colour.permute(0, 1, 4, 2, 5, 3, 6).reshape(count, -1, side * side))
        return (counts >= self._present).float().view(count, rows * columns, -1)

    def _shape(self, frames: Tensor) -> tuple[int, int]:
        """(rows, columns) of cells"""
        return frames.shape[2] // self._cell, frames.shape[3] // self._cell

    def _colours(self, frames: Tensor) -> Tensor:
        """int64 [N, H, W]: the palette's colours of uint8 [N, 3, H, W]."""
        bins = frames.long() // (256 // _LEVELS)
        return self._table[(bins[:, 0] * _LEVELS + bins[:, 1]) * _LEVELS + bins[:, 2]]

    def _counts(self, colour: Tensor) -> Tensor:
        """[N, cells, K]: how many pixels of each of these cells, int64 [N, cells, pixels], have which colour."""
        counts = torch.zeros(*colour.shape[:2], self._size)
        return counts.scatter_add_(2, colour, torch.ones_like(colour, dtype=torch.float32))


def _nearest(colours: np.ndarray, centres: np.ndarray) -> np.ndarray:
    return np.argmin(((colours[:, None] - centres[None]) ** 2).sum(-1), axis=1)

"""Objects are erased from an image with the help of one that shows what is behind them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

CHANGED = 12  # of 255, in one channel: a pixel that is not the table's any more
REACH_PX = 12.0  # at 128 px; an object's pixels are no farther from its middle


def owners(image: np.ndarray, empty: np.ndarray, middles: np.ndarray) -> np.ndarray:
    """int64 [H, W]: the object whose pixel it is, -1 where nobody's.

    image, empty: uint8 [H, W, 3], with and without the objects. middles: float32 [O, 2], the middle of each object as
    fractions of width and height, NaN for what is not in view.
    """
    height, width = image.shape[:2]
    changed = np.abs(image.astype(int) - empty).max(-1) > CHANGED
    v, u = np.mgrid[:height, :width] + 0.5
    distance = np.hypot(u - middles[:, 0, None, None] * width, v - middles[:, 1, None, None] * height)
    distance = np.where(np.isnan(distance), np.inf, distance)
    near = distance.min(0) <= REACH_PX * width / 128
    return np.where(changed & near, distance.argmin(0), -1)


def showing(image: np.ndarray, empty: np.ndarray, own: np.ndarray, numbers: Sequence[int]) -> np.ndarray:
    """uint8 [H, W, 3]: the image with these objects alone. own: whose pixels they are, as `owners` says."""
    return np.where(np.isin(own, numbers)[..., None], image, empty)

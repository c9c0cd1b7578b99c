"""A picture of an observation that has no image: its numbers as bars."""

from __future__ import annotations

import numpy as np

WIDTH_PX, HEIGHT_PX = 384, 192
UP, DOWN, PAPER, ZERO = (84, 190, 120), (228, 92, 84), (34, 36, 42), (90, 92, 98)


def state_image(state: np.ndarray) -> np.ndarray:
    """uint8 [192, 384, 3]: a bar for each number of float32 [D], upwards where it is positive; 1 and more fill it."""
    image = np.full((HEIGHT_PX, WIDTH_PX, 3), PAPER, np.uint8)
    middle = HEIGHT_PX // 2
    edges = np.linspace(0, WIDTH_PX, len(state) + 1).astype(int)
    for value, left, right in zip(np.clip(state, -1, 1), edges, edges[1:], strict=False):
        inside = slice(left, max(right - 2, left + 1))
        height = int(abs(value) * (middle - 4))
        if value >= 0:
            image[middle - height : middle, inside] = UP
        else:
            image[middle : middle + height, inside] = DOWN
    image[middle] = ZERO
    return image

"""Three short episodes as MIKASA-Robo-VLA's releases hold them, the same in each of their formats."""

from __future__ import annotations

import numpy as np

ENV_ID, FOLDER = "RememberColor3-VLA-v0", "remember_color_3_vla_v0"
INSTRUCTION = "Remember the color, then touch the cube of that color."
LENGTHS = (14, 3, 5)
PX = 64  # the least that the AV1 encoder takes


def episode(number: int) -> dict[str, np.ndarray]:
    """`image` and `wrist_image` uint8 [T, PX, PX, 3], smooth so that a video keeps them; `proprio`, `action` [T, 7]."""
    rng = np.random.default_rng(number)
    steps = LENGTHS[number]
    return {
        "image": _images(rng, steps),
        "wrist_image": _images(rng, steps),
        "proprio": rng.normal(size=(steps, 7)).astype(np.float32),
        "action": rng.uniform(-1, 1, (steps, 7)).astype(np.float32),
    }


def _images(rng: np.random.Generator, steps: int) -> np.ndarray:
    """A grey of its own for each step, brighter downwards."""
    grey = rng.permutation(np.linspace(20, 180, steps)).astype(int)[:, None, None, None]
    shade = np.linspace(0, 60, PX).astype(int)[:, None, None]
    return np.broadcast_to(grey + shade, (steps, PX, PX, 3)).astype(np.uint8)

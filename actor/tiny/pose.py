"""The TCP's pose at the beginning of a state, as the locator reads it."""

from __future__ import annotations

from typing import Literal

import numpy as np

POSE_DIM = 9  # TCP position, and the first two columns of its rotation
Rotation = Literal["columns", "rpy"]
ROTATION_DIM: dict[Rotation, int] = {"columns": 6, "rpy": 3}


def poses(state: np.ndarray, rotation: Rotation) -> np.ndarray:
    """float32 [b, 9]: position in metres and the first two columns of the rotation.

    state: [b, D], beginning with the position and, by `rotation`, these columns or roll, pitch and yaw in radians
    about the fixed axes x, y and z.
    """
    state = np.asarray(state, np.float32)
    if rotation == "columns":
        return state[:, :POSE_DIM].copy()
    (sr, sp, sy), (cr, cp, cy) = np.sin(state[:, 3:6].T), np.cos(state[:, 3:6].T)
    x = (cp * cy, cp * sy, -sp)
    y = (sr * sp * cy - cr * sy, sr * sp * sy + cr * cy, sr * cp)
    return np.concatenate([state[:, :3], np.stack([*x, *y], axis=1)], axis=1)

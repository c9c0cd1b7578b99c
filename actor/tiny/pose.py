"""The TCP's pose in a state, as the locator reads it."""

from __future__ import annotations

from typing import Literal

import numpy as np

POSE_DIM = 9  # TCP position, and the first two columns of its rotation
Rotation = Literal["columns", "rpy", "down"]
ROTATION_DIM: dict[Rotation, int] = {"columns": 6, "rpy": 3, "down": 0}
DOWN = (1.0, 0.0, 0.0, 0.0, -1.0, 0.0)


def poses(state: np.ndarray, rotation: Rotation, start: int = 0) -> np.ndarray:
    """float32 [b, 9]: position in metres and the first two columns of the rotation.

    state: [b, D], which has from entry `start` on the position and, by `rotation`, these columns, or roll, pitch and
    yaw in radians about the fixed axes x, y and z, or nothing, because the gripper always points down.
    """
    state = np.asarray(state, np.float32)[:, start:]
    if rotation == "down":
        return np.concatenate([state[:, :3], np.tile(np.array(DOWN, np.float32), (len(state), 1))], axis=1)
    if rotation == "columns":
        return state[:, :POSE_DIM].copy()
    (sr, sp, sy), (cr, cp, cy) = np.sin(state[:, 3:6].T), np.cos(state[:, 3:6].T)
    x = (cp * cy, cp * sy, -sp)
    y = (sr * sp * cy - cr * sy, sr * sp * sy + cr * cy, sr * cp)
    return np.concatenate([state[:, :3], np.stack([*x, *y], axis=1)], axis=1)

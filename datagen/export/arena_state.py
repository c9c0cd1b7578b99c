"""The arena's state vector, and the robot arrays of LIBERO-like data sets (RoboMemArena's among them).

State, float32 [T, 17]: TCP position [3] in m, the first two columns of its rotation matrix [6], opening
of the gripper [1] in m, joint angles [7] in rad. Theirs: `ee_states` [T, 6], position in m and rotation
vector (axis times angle, in rad, angle at most pi); `gripper_states` [T, 2], the two finger joints in m
with opposite signs, as robosuite has them; `joint_states` [T, 7] in rad.
"""

from __future__ import annotations

import numpy as np

from predimem.envs.arena.suite import JOINTS, OPENING, POSITION, ROTATION

__all__ = ["JOINTS", "OPENING", "POSITION", "ROTATION"]

NAMES = (
    *(f"tcp_{axis}_m" for axis in "xyz"),
    *(f"tcp_rotation_{row}{column}" for column in range(2) for row in range(3)),
    "gripper_opening_m",
    *(f"joint{n}_rad" for n in range(1, 8)),
)
DIM = len(NAMES)


def robot_arrays(state: np.ndarray) -> dict[str, np.ndarray]:
    """float64 `ee_states` [T, 6], `gripper_states` [T, 2] and `joint_states` [T, 7] of a state [T, 17]."""
    state = np.asarray(state, np.float64)
    if state.ndim != 2 or state.shape[1] != DIM:
        raise ValueError(f"expected the arena's state [T, {DIM}], got {state.shape}")
    finger_m = state[:, OPENING] / 2
    turned = rotation_vectors(matrices_from_columns(state[:, ROTATION]))
    return {
        "ee_states": np.concatenate([state[:, POSITION], turned], axis=1),
        "gripper_states": np.stack([finger_m, -finger_m], axis=1),
        "joint_states": state[:, JOINTS],
    }


def arena_state(ee_states: np.ndarray, gripper_states: np.ndarray, joint_states: np.ndarray) -> np.ndarray:
    """float32 [T, 17]: the inverse of `robot_arrays`; the signs of the fingers do not matter."""
    turned = rotation_matrices(ee_states[:, 3:])
    columns = turned[:, :, :2].transpose(0, 2, 1).reshape(-1, 6)
    opening_m = np.abs(gripper_states).sum(axis=1, keepdims=True)
    return np.concatenate([ee_states[:, :3], columns, opening_m, joint_states], axis=1).astype(np.float32)


def matrices_from_columns(columns: np.ndarray) -> np.ndarray:
    """[T, 3, 3] from the first two columns [T, 6], made orthonormal."""
    first = columns[:, :3] / np.linalg.norm(columns[:, :3], axis=1, keepdims=True)
    second = columns[:, 3:] - first * np.einsum("ti,ti->t", first, columns[:, 3:])[:, None]
    second /= np.linalg.norm(second, axis=1, keepdims=True)
    return np.stack([first, second, np.cross(first, second)], axis=2)


def rotation_vectors(matrices: np.ndarray) -> np.ndarray:
    """[T, 3]: axis times angle (rad, at most pi) of rotation matrices [T, 3, 3].

    By way of the quaternion's best conditioned row: a gripper that points down is about half a turn
    from the base frame, where the antisymmetric part of the matrix says little of the axis.
    """
    r = matrices
    x, y, z = r[:, 2, 1] - r[:, 1, 2], r[:, 0, 2] - r[:, 2, 0], r[:, 1, 0] - r[:, 0, 1]
    xy, xz, yz = r[:, 0, 1] + r[:, 1, 0], r[:, 0, 2] + r[:, 2, 0], r[:, 1, 2] + r[:, 2, 1]
    a, b, c = r[:, 0, 0], r[:, 1, 1], r[:, 2, 2]
    rows = [
        [1 + a + b + c, x, y, z],
        [x, 1 + a - b - c, xy, xz],
        [y, xy, 1 - a + b - c, yz],
        [z, xz, yz, 1 - a - b + c],
    ]
    outer = np.array(rows).transpose(2, 0, 1)  # [T, 4, 4]: 4 q qᵀ of the quaternion q = (w, x, y, z)
    best = np.argmax(np.einsum("tii->ti", outer), axis=1)
    quaternion = outer[np.arange(len(outer)), best]
    quaternion *= np.where(quaternion[:, :1] < 0, -1.0, 1.0) / np.linalg.norm(quaternion, axis=1, keepdims=True)
    sine = np.linalg.norm(quaternion[:, 1:], axis=1, keepdims=True)
    angle = 2 * np.arctan2(sine, quaternion[:, :1])
    return quaternion[:, 1:] * np.divide(angle, sine, out=np.full_like(sine, 2.0), where=sine > 1e-12)


def rotation_matrices(vectors: np.ndarray) -> np.ndarray:
    """[T, 3, 3]: the inverse of `rotation_vectors`, by Rodrigues' formula."""
    vectors = np.asarray(vectors, np.float64)
    angle = np.linalg.norm(vectors, axis=1)[:, None, None]
    x, y, z = vectors.T
    zero = np.zeros_like(x)
    cross = np.array([[zero, -z, y], [z, zero, -x], [-y, x, zero]]).transpose(2, 0, 1)
    return np.eye(3) + np.sinc(angle / np.pi) * cross + 0.5 * np.sinc(angle / (2 * np.pi)) ** 2 * (cross @ cross)

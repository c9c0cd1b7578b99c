"""RoboMME's robot, for all who read or make its observations and actions: the simulation, its data and its clients."""

from __future__ import annotations

import numpy as np

CAMERAS = ("base_camera", "hand_camera")  # RoboMME calls their images front_rgb and wrist_rgb
CONTROL_HZ = 20.0
ACTION_DIM = 8  # absolute angles of seven joints in rad, and the gripper: 1 open, -1 closed
ARM_JOINTS = 7
GRIPPER_OPEN = 1.0
STATE_DIM = 12
OPENING = slice(7, 9)  # of a state: both fingers in m
POSITION = slice(9, 12)  # of a state: the gripper in m


def state_of(joints: np.ndarray, fingers: np.ndarray, end_effector: np.ndarray) -> np.ndarray:
    """float32 [12]: joint angles [7] in rad, fingers [2] and the gripper's position [3] in m, in the world frame.

    end_effector: position and angles, as RoboMME gives them. The angles are left out: they follow from the joints, and
    jump by a whole turn between episodes.
    """
    parts = (np.ravel(joints)[:ARM_JOINTS], np.ravel(fingers)[:2], np.ravel(end_effector)[:3])
    return np.concatenate(parts).astype(np.float32)


def resized(image: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    """uint8 [H, W, 3] -> uint8 [*size, 3], by area."""
    if image.shape[:2] == size:
        return np.array(image, np.uint8)
    import cv2

    return cv2.resize(np.ascontiguousarray(image), size[::-1], interpolation=cv2.INTER_AREA)


def hold_action(last: np.ndarray | None, joints: np.ndarray) -> np.ndarray:
    """float32 [8]: the arm stays where it was last commanded to (at its joints after a reset), and so does the
    gripper."""
    return np.array([*joints[:ARM_JOINTS], GRIPPER_OPEN] if last is None else last, np.float32)


def check_action(action: np.ndarray) -> np.ndarray:
    """float32 [8]. Raises ValueError for another shape or for values that are not finite."""
    action = np.asarray(action, np.float32)
    if action.shape != (ACTION_DIM,):
        raise ValueError(
            f"expected an action of shape ({ACTION_DIM},), seven joint angles and the gripper, got {action.shape}"
        )
    if not np.isfinite(action).all():
        raise ValueError(f"expected finite action values, got {action.tolist()}")
    return action

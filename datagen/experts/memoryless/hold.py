"""What is between the fingers."""

from __future__ import annotations

import numpy as np

from datagen.experts.scripted.known_grasp import GRASP_BELOW_TOP_M
from datagen.experts.scripted.pick import EMPTY_GAP_M
from datagen.experts.scripted.snapshot import Gripper, Snapshot
from predimem.envs.arena.fixtures import CABINET

HANDLE_GAP_M = 2 * CABINET.handle_radius_m  # of fingers that have closed on a handle
OPENED_GAP_M = 0.076  # fingers that are further apart have nothing between them and do not close
PAD_M = 0.004  # flat fingertips come so much nearer to each other than the corners between them are apart
JAM_ROOM_M = 0.003  # corners that leave less than this between them and the fingers may be stuck
DEEP_M = 0.02  # between the fingers means: so far from the grasp's height, at most


def holding(gripper: Gripper, scene: Snapshot, object: str) -> bool:
    """Whether the fingers have closed on the object."""
    width = grasped_width_m(gripper, scene, object)
    corners = 0.0 if scene.extent(object).round else corners_m(gripper, scene, object)  # of a box that is askew
    widest = min(max(width + 0.008, corners - PAD_M), max(width + 0.0025, OPENED_GAP_M - 0.002))
    return EMPTY_GAP_M < gripper.gap_m <= widest and around(gripper, scene, object)


def grasped_width_m(gripper: Gripper, scene: Snapshot, object: str) -> float:
    """How far apart the fingers are when they have closed on an object."""
    return 2 * scene.extent(object).half_m[int(_side(gripper, scene, object).argmax())]


def corners_m(gripper: Gripper, scene: Snapshot, object: str) -> float:
    """How far apart the corners of a box are along the line on which the fingers close."""
    return 2 * float(_side(gripper, scene, object) @ scene.extent(object).half_m)


def _side(gripper: Gripper, scene: Snapshot, object: str) -> np.ndarray:
    """[3]: how much each axis of an object lies along the line on which the fingers close."""
    return np.abs(scene.rotation(object).T @ gripper.rotation[:, 1])


def around(gripper: Gripper, scene: Snapshot, object: str) -> bool:
    """Whether the object is between the fingers, open or closed."""
    x, y, z = gripper.rotation.T @ (scene.position_m(object) - gripper.position)
    half = float(np.abs(scene.rotation(object).T @ gripper.rotation[:, 2]) @ scene.extent(object).half_m)
    deepest = max(0.0, half - GRASP_BELOW_TOP_M) + DEEP_M
    return bool(abs(x) < 0.035 and abs(y) < 0.03 and -DEEP_M < z < deepest)


def jammed(gripper: Gripper, scene: Snapshot, object: str) -> bool:
    """Whether a box is stuck by its corners between fingers that are open as far as they go."""
    if scene.extent(object).round or gripper.gap_m < OPENED_GAP_M or not around(gripper, scene, object):
        return False
    return corners_m(gripper, scene, object) > gripper.gap_m - JAM_ROOM_M


def gripping(gripper: Gripper, handle: np.ndarray, within_m: float) -> bool:
    """Whether the fingers have closed on the bar of a handle, whose middle is at most so far from the TCP."""
    closed = 0.5 * HANDLE_GAP_M < gripper.gap_m < HANDLE_GAP_M + 0.008
    return closed and bool(np.linalg.norm(gripper.position - handle) < within_m)

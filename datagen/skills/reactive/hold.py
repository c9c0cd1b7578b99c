"""What is between the fingers."""

from __future__ import annotations

import numpy as np

from datagen.arena.fixtures import CABINET
from datagen.skills.known_grasp import GRASP_BELOW_TOP_M
from datagen.skills.pick import EMPTY_GAP_M
from datagen.skills.snapshot import Hand, Snapshot

HANDLE_GAP_M = 2 * CABINET.handle_radius_m  # of fingers that have closed on a handle
OPENED_GAP_M = 0.076  # fingers that are further apart have nothing between them and do not close
DEEP_M = 0.02  # between the fingers means: so far from the grasp's height, at most


def holding(hand: Hand, scene: Snapshot, object: str) -> bool:
    """Whether the fingers have closed on the object."""
    width = grasped_width_m(hand, scene, object)  # askew, a box keeps the fingers further apart
    closed = EMPTY_GAP_M < hand.gap_m <= min(width + 0.008, max(width + 0.0025, OPENED_GAP_M - 0.002))
    return closed and around(hand, scene, object)


def grasped_width_m(hand: Hand, scene: Snapshot, object: str) -> float:
    """How far apart the fingers are when they have closed on an object."""
    extent, side = scene.extent(object), np.abs(scene.rotation(object).T @ hand.rotation[:, 1])
    return 2 * extent.half_m[int(side.argmax())]


def around(hand: Hand, scene: Snapshot, object: str) -> bool:
    """Whether the object is between the fingers, open or closed."""
    x, y, z = hand.rotation.T @ (scene.position_m(object) - hand.position)
    half = float(np.abs(scene.rotation(object).T @ hand.rotation[:, 2]) @ scene.extent(object).half_m)
    deepest = max(0.0, half - GRASP_BELOW_TOP_M) + DEEP_M
    return bool(abs(x) < 0.035 and abs(y) < 0.03 and -DEEP_M < z < deepest)


def gripping(hand: Hand, handle: np.ndarray, within_m: float) -> bool:
    """Whether the fingers have closed on the bar of a handle, whose middle is at most so far from the TCP."""
    closed = 0.5 * HANDLE_GAP_M < hand.gap_m < HANDLE_GAP_M + 0.008
    return closed and bool(np.linalg.norm(hand.position - handle) < within_m)

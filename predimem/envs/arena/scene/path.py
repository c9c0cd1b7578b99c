"""Where somebody who visits puts things down, and along which way: metres, world frame."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise

import numpy as np

from predimem.envs.arena import fixtures as f
from predimem.envs.arena.layout import Pose
from predimem.envs.arena.unseen.room import is_clear

STEP_M = 0.02  # in a control step: 0.4 m/s
LOW_M, SHELF_M, HIGH_M = 0.17, 0.23, 0.45  # over what stands on the table, a shelf's walls, and the open top drawer
BEFORE_CABINET_X_M = -0.18  # from the height `LOW_M` to `HIGH_M` in front of the cabinet, beside the arm
OUTSIDE_M = 0.05  # beyond the area that objects start in
SPACINGS_M = ((0.14, 0.13), (0.12, 0.10), (0.10, 0.08), (0.08, 0.06))  # to objects and furniture, the first that fits
TRIES = 40  # with each spacing
SLOT_FREE_M = 0.06
UNDER_M = 0.03  # what is so far below the tips of the fingers passes under the gripper


def path_m(start: np.ndarray, goal: np.ndarray, lift_m: float, into_drawer: bool) -> np.ndarray:
    """[T, 3]: up to the height `lift_m`, over, and down; a point for each control step."""
    corners = [start, np.array([*start[:2], max(lift_m, start[2])])]
    if into_drawer:
        before = np.array([BEFORE_CABINET_X_M, goal[1]])
        corners += [np.array([*before, lift_m]), np.array([*before, HIGH_M]), np.array([*goal[:2], HIGH_M])]
    else:
        corners.append(np.array([*goal[:2], max(lift_m, start[2])]))
    corners.append(goal)
    points = [start]
    for here, there in pairwise(corners):
        count = max(1, int(np.ceil(np.linalg.norm(there - here) / STEP_M)))
        points += [here + (there - here) * (k + 1) / count for k in range(count)]
    return np.array(points)


def passes(points: np.ndarray, half_height_m: float, tcp_m: np.ndarray, room_m: float) -> bool:
    """Whether an object that moves along points [T, 3] stays beside the gripper, or far enough below it."""
    beside = np.linalg.norm(points[:, :2] - tcp_m[:2], axis=1) >= room_m
    below = points[:, 2] + half_height_m <= tcp_m[2] - UNDER_M
    return bool((beside | below).all())


def free_table_point_m(
    taken: Sequence[np.ndarray],
    fixtures: Mapping[str, Pose],
    accept: Callable[[np.ndarray], bool],
    rng: np.random.Generator,
) -> np.ndarray | None:
    """[3]: an accepted point of the table, away from the points `taken` [2] and from furniture; None if none is found.

    accept: from a point [3] to whether it will do.
    """
    low, high = np.subtract(f.SPAWN_LOW_M, OUTSIDE_M), np.add(f.SPAWN_HIGH_M, OUTSIDE_M)
    for spacing, clear in SPACINGS_M:
        for _ in range(TRIES):
            point = rng.uniform(low, high)
            apart = all(np.linalg.norm(point - other) >= spacing for other in taken)
            if apart and is_clear(point, fixtures, clear) and accept(np.array([*point, 0.0])):
                return np.array([*point, 0.0])
    return None


def free_slot_m(place: str, frame_m: np.ndarray, others: Sequence[np.ndarray]) -> np.ndarray:
    """[3]: the first slot of a place that is free, on its floor; if none is, the one with most room.

    frame_m: [3], where the fixture or the drawer is. others: [3] each, the other objects.
    """
    spec = f.PLACES[place]
    slots = [frame_m + np.add(spec.centre_m, [*slot, 0.0]) for slot in spec.slots_m]

    def room_m(slot: np.ndarray) -> float:
        return min((float(np.linalg.norm(other - slot)) for other in others), default=np.inf)

    return next((slot for slot in slots if room_m(slot) > SLOT_FREE_M), max(slots, key=room_m))

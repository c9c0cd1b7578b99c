"""Picking up a cube of 4 cm and putting it somewhere, from above, without memory: the positions say what comes next."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from predimem.envs.mikasa.families.motion import FUNNEL_M, GRIPPER_CLOSED, GRIPPER_OPEN, funnel_m, hold, moved, towards

CUBE_M = 0.04
CLEAR_M = 0.16  # the TCP's height when it moves over the table, with or without a cube
AT_M = 0.012
ASKEW_RAD = 0.35  # fingers that are turned by more stop at a cube's corners
HELD_M = 0.025  # between TCP and the centre of a cube that the fingers hold
HELD_OPENING_M = (0.03, 0.046)
RELEASED_M = 0.055
GRIPPER_RELEASE = 0.6  # a gap of 6 cm, which leaves room for a neighbour
DROP_M = 0.004  # let go so far above where the cube comes to lie,
LOW_M = 0.008  # or so much higher, where a neighbour is in the way


def is_held(tcp_m: np.ndarray, gripper_m: float, cube_m: np.ndarray) -> bool:
    """Whether the fingers are closed around a cube."""
    return bool(
        HELD_OPENING_M[0] < gripper_m < HELD_OPENING_M[1] and np.linalg.norm(np.subtract(tcp_m, cube_m)) < HELD_M
    )


def pick_goal_m(tcp_m: np.ndarray, cube_m: np.ndarray) -> np.ndarray:
    """float64 [3]: where the TCP moves next to get around a cube: up, over it, then down."""
    return funnel_m(tcp_m, cube_m, CLEAR_M)


def pick(tcp_m: np.ndarray, gripper_m: float, cube_m: np.ndarray, turn_rad: float = 0.0) -> np.ndarray:
    """float32 [7]: towards holding the cube; at rest once it is held.

    turn_rad: how far the fingers have to turn to lie along its sides (`posture.turn_to_rad`); they close once that is
    little.
    """
    if is_held(tcp_m, gripper_m, cube_m):
        return hold(GRIPPER_CLOSED)
    if np.linalg.norm(cube_m - tcp_m) < AT_M:
        return hold(GRIPPER_CLOSED if abs(turn_rad) < ASKEW_RAD else GRIPPER_OPEN)
    return towards(tcp_m, pick_goal_m(tcp_m, cube_m), GRIPPER_OPEN, arrived_m=0.0)


def carry_goal_m(tcp_m: np.ndarray, place_m: np.ndarray, cube_m: np.ndarray) -> np.ndarray:
    """float64 [3]: where the TCP moves next with a cube that has to come to `place_m`: up, over it, then down."""
    return funnel_m(tcp_m, _above(tcp_m, place_m, cube_m), CLEAR_M)


def put(tcp_m: np.ndarray, gripper_m: float, place_m: np.ndarray, cube_m: np.ndarray) -> np.ndarray:
    """float32 [7]: put the cube that is held down at `place_m` (its centre), let go of it, and rise."""
    if gripper_m > HELD_OPENING_M[1]:
        up = np.array([*tcp_m[:2], CLEAR_M])
        return towards(tcp_m, up, GRIPPER_RELEASE) if gripper_m > RELEASED_M else hold(GRIPPER_RELEASE)
    above = _above(tcp_m, place_m, cube_m)
    if np.linalg.norm((above - tcp_m)[:2]) < FUNNEL_M[0] and tcp_m[2] < above[2] + LOW_M:
        return hold(GRIPPER_RELEASE)
    return towards(tcp_m, funnel_m(tcp_m, above, CLEAR_M), GRIPPER_CLOSED, arrived_m=0.0)


def _above(tcp_m: np.ndarray, place_m: np.ndarray, cube_m: np.ndarray) -> np.ndarray:
    """Where the TCP is when the cube, wherever the fingers have it, is let go at its place."""
    aside = np.clip(cube_m - tcp_m, -HELD_M, [HELD_M, HELD_M, 0.0])  # no lower than the place: fingers hit the ground
    return place_m - aside + np.array([0.0, 0.0, DROP_M])


def carried(state: Mapping[str, Any], action: np.ndarray, cube_m: np.ndarray) -> tuple[dict[str, Any], np.ndarray]:
    """What `motion.moved` gives, and where a cube is then: closed fingers stop at it and take it with them."""
    after = moved(state, action)
    between = np.linalg.norm(state["tcp_m"] - cube_m) < HELD_M
    if between:
        after["gripper_m"] = max(after["gripper_m"], CUBE_M)
    if between and is_held(state["tcp_m"], state["gripper_m"], cube_m) and action[-1] <= 0:
        return after, cube_m + after["tcp_m"] - state["tcp_m"]
    return after, cube_m

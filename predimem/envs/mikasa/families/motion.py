"""Motions of the suite's arm under `pd_ee_delta_pose`: towards a point, at rest, and how far a command gets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

ACTION_DIM = 7
METRES_PER_UNIT = 0.1  # an action of 1 commands 0.1 m
REACHED_SHARE = 0.4  # of a commanded step, about what the controller covers within it
GRIPPER_CLOSED, GRIPPER_OPEN = -1.0, 1.0
GRIPPER_MAX_M = 0.08
GRIPPER_M_PER_STEP = 0.02

FINGERS_LOW_M = 0.06  # the fingers of a TCP below this touch what lies on the table
FUNNEL_M = (0.015, 0.04)  # in x and y: all the way down within the first, not at all beyond the second

GAIN = 1.5
MAX_STEP_M = 0.1
ARRIVED_M = 0.012


def hold(gripper: float = GRIPPER_CLOSED) -> np.ndarray:
    """float32 [7]: no motion of the arm."""
    action = np.zeros(ACTION_DIM, np.float32)
    action[-1] = gripper
    return action


def towards(
    tcp_m: np.ndarray,
    goal_m: np.ndarray,
    gripper: float = GRIPPER_CLOSED,
    arrived_m: float = ARRIVED_M,
    gain: float = GAIN,
    max_step_m: float = MAX_STEP_M,
) -> np.ndarray:
    """float32 [7]: straight towards a point, and at rest within `arrived_m` of it."""
    action = hold(gripper)
    error = np.asarray(goal_m, np.float64) - tcp_m
    if np.linalg.norm(error) >= arrived_m:
        step = gain * error
        action[:3] = step * min(1.0, max_step_m / np.linalg.norm(step)) / METRES_PER_UNIT
    return action


def moved(state: Mapping[str, Any], action: np.ndarray) -> dict[str, Any]:
    """`tcp_m` and `gripper_m` one control step after an action, about."""
    after: dict[str, Any] = {"tcp_m": state["tcp_m"] + REACHED_SHARE * METRES_PER_UNIT * action[:3].astype(np.float64)}
    if "gripper_m" in state:
        wanted = GRIPPER_MAX_M if action[-1] > 0 else 0.0
        change = np.clip(wanted - state["gripper_m"], -GRIPPER_M_PER_STEP, GRIPPER_M_PER_STEP)
        after["gripper_m"] = float(state["gripper_m"] + change)
    return after


def shoved_m(object_m: np.ndarray, tcp_m: np.ndarray, contact_m: float) -> np.ndarray:
    """float64 [3]: where an object is once the fingers, lowered to it, have come as close as `contact_m` (in x and y).

    About: it is moved straight away from the TCP.
    """
    away = (object_m - tcp_m)[:2]
    distance = float(np.linalg.norm(away))
    if tcp_m[2] > FINGERS_LOW_M or not 0 < distance < contact_m:
        return object_m
    return np.array([*(tcp_m[:2] + away * contact_m / distance), object_m[2]])


def funnel_m(tcp_m: np.ndarray, place_m: np.ndarray, clear_m: float) -> np.ndarray:
    """float64 [3]: where the TCP moves next to reach a place from above: up to the height `clear_m` where it is low and
    far off, over the place at that height, and down the closer it is to being over it."""
    away = float(np.linalg.norm((place_m - tcp_m)[:2]))
    if away > FUNNEL_M[1] and tcp_m[2] < clear_m - 0.04:
        return np.array([*tcp_m[:2], clear_m])
    share = np.clip((away - FUNNEL_M[0]) / (FUNNEL_M[1] - FUNNEL_M[0]), 0.0, 1.0)
    return np.array([*place_m[:2], place_m[2] + share * max(clear_m - place_m[2], 0.0)])

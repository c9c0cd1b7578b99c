"""TakeItBack: a cube has to be moved to a target and, once that changes its colour, back to where it was.

What is seen: the green cube, and a target that is red until the cube has come to it, and then purple. Where the cube
lay at first is not marked in any image. What a learner must remember: the first image. The cube lies on the right, in
the middle or on the left (as the robot sees it), and a cube that comes back to the middle of its part of the table is
always near enough to where it was, so that three subtasks for the way back are enough.

The controller closes the fingers around the cube and carries it just above the table. The suite looks only at where the
cube is, not at whether it is pushed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from predimem.envs.mikasa.families.family import Family, State
from predimem.envs.mikasa.families.motion import GRIPPER_CLOSED, hold, towards
from predimem.envs.mikasa.families.pick_place import carried, is_held, pick, pick_goal_m
from predimem.envs.mikasa.families.scene import pointing, position_m, robot_state

FETCH = "move the cube to the red target"
SIDES = ("right", "middle", "left")
BACK = tuple(f"move the cube back to the {side}" for side in SIDES)

MIDDLES_M = np.array([(0.0, 0.025 + 0.1 * part) for part in (-1, 0, 1)])  # (x, y), of the parts; half sizes 0.05, 0.025
LIFTED_M = 0.04
TILT_FROM_M = 0.02  # x
CARRY_STEP_M = 0.06  # commands beyond the arm's reach are not carried out at all
CARRIED_M = 0.06  # the TCP's height while it holds the cube: lower, the fingers catch on the table


class TakeItBack(Family):
    """Its state has, beside `scene.robot_state`: cube_m, target_m: float64 [3], world frame; reached: whether the cube
    has been at the target; pointing: float64 [3], where the fingers point, a unit vector; side: int, the index of
    `SIDES` where the cube lay at first."""

    name = "TakeItBack"
    tasks = ("TakeItBack-VLA-v0",)

    def state(self, base: Any, step: int) -> dict[str, Any]:
        target = position_m(base.goal_region)
        first_y = position_m(base.initial_region)[1]
        return robot_state(base, step) | {
            "cube_m": position_m(base.cube),
            "target_m": np.array([*target[:2], 0.0]),
            "pointing": pointing(base),
            "reached": bool(base.goal_reached_status[0]),
            "side": int(np.argmin(np.abs(MIDDLES_M[:, 1] - first_y))),
        }

    def subtask(self, state: State) -> str:
        return BACK[state["side"]] if state["reached"] else FETCH

    def subtasks(self, task: str) -> Sequence[str]:
        return (FETCH, *BACK)

    def goal(self, state: State) -> str:
        return BACK[state["side"]]

    def act(self, state: State, subtask: str) -> np.ndarray:
        place = _place_m(state, subtask)
        if place is None:
            return hold()
        if not _held(state):
            return pick(state["tcp_m"], state["gripper_m"], state["cube_m"])
        action = towards(state["tcp_m"], _carried_m(state, place), GRIPPER_CLOSED, 0.0, max_step_m=CARRY_STEP_M)
        action[4] = np.clip(5.0 * (_tilt(state) - state["pointing"][0]), -1, 1)
        return action

    def valid(self, state: State, subtask: str) -> bool:
        return subtask in BACK if state["reached"] else subtask == FETCH

    def target_m(self, state: State, subtask: str) -> np.ndarray | None:
        """The cube until it is held, and then where it has to go."""
        return state["cube_m"] if not _held(state) and subtask in (FETCH, *BACK) else _place_m(state, subtask)

    def goal_m(self, state: State, subtask: str) -> np.ndarray | None:
        place = _place_m(state, subtask)
        if place is None:
            return None
        return _carried_m(state, place) if _held(state) else pick_goal_m(state["tcp_m"], state["cube_m"])

    def advance(self, state: State, action: np.ndarray) -> State:
        after, cube = carried(state, action, state["cube_m"])
        return {**state, **after, "cube_m": cube}

    def evidence(self, state: State) -> str:
        """Where the cube lies at first, and that the target has changed its colour."""
        return "purple target" if state["reached"] else "" if state["step"] else "cube at its first place"

    def things(self, state: State) -> Mapping[str, np.ndarray]:
        return {"cube": state["cube_m"], "purple target" if state["reached"] else "red target": state["target_m"]}


def _place_m(state: State, subtask: str) -> np.ndarray | None:
    """float64 [3]: where a subtask brings the cube."""
    if subtask == FETCH:
        return state["target_m"]
    return np.array([*MIDDLES_M[BACK.index(subtask)], 0.0]) if subtask in BACK else None


def _held(state: State) -> bool:
    return is_held(state["tcp_m"], state["gripper_m"], state["cube_m"])


def _tilt(state: State) -> float:
    """The wanted x of `pointing`: the target is farther away than an upright hand can reach."""
    return float(0.5 * np.clip((state["tcp_m"][0] - TILT_FROM_M) / 0.1, 0.0, 1.0))


def _carried_m(state: State, target_m: np.ndarray) -> np.ndarray:
    """Where the TCP moves next with the cube: off the table, then over the target."""
    over = state["tcp_m"] if state["tcp_m"][2] < LIFTED_M else target_m
    return np.array([*over[:2], CARRIED_M])


TAKE_IT_BACK = TakeItBack()

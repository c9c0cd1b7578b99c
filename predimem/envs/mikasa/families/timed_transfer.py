"""TimedTransfer*: a given number of steps after a lamp turns green, a cube has to be moved from one disc to another.

What is seen: the lamp is white for one to three steps and green from then on; the blue cube lies on the green disc. The
cube has to come to the red disc at the step that the instruction names, five percent early or late at most (from 95 to
105 in Easy). What a learner must remember: the image in which the lamp turned green, and when that was. Of all families
this is the one that is about time: no image shows it, so the last subtask can only be told by a memory that says when
an image was taken (`prompt.timestamps`). The cube waits above the red disc until then, which images do show.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from predimem.envs.mikasa.families.family import Family, State
from predimem.envs.mikasa.families.motion import GRIPPER_CLOSED, GRIPPER_OPEN, hold, towards
from predimem.envs.mikasa.families.pick_place import CLEAR_M, carried, carry_goal_m, is_held, pick, pick_goal_m, put
from predimem.envs.mikasa.families.scene import BULB_M, position_m, robot_state

WATCH = "watch the lamp"
PICK = "pick up the blue cube"
WAIT = "hold the blue cube above the red disc"
PUT = "put the blue cube on the red disc"

LOWERING_STEPS = 5  # from above the disc to where the cube counts as being on it, about

LEVELS = ("Easy", "Medium", "Hard", "Easy-Long", "Medium-Long", "Hard-Long")


class TimedTransfer(Family):
    """Its state has, beside `scene.robot_state`: signal: whether the lamp is green; due: whether the cube has to be put
    down; lamp_m, cube_m, place_m: float64 [3], world frame: the bulb, the cube, and its place on the red disc."""

    name = "TimedTransfer"
    tasks = tuple(f"TimedTransfer{level}-VLA-v0" for level in LEVELS)

    def state(self, base: Any, step: int) -> dict[str, Any]:
        signal = int(base.signal_step[0])
        height = 2 * base.DISC_HALF_HEIGHT + base.CUBE_HALF_SIZE
        return robot_state(base, step) | {
            "signal": step >= signal,
            "due": step >= signal + base.DELAY_STEPS - LOWERING_STEPS,
            "lamp_m": position_m(base.lamp_body) + BULB_M,
            "cube_m": position_m(base.blue_cube),
            "place_m": np.array([*base.red_disc_center[0, :2].tolist(), height]),
        }

    def subtask(self, state: State) -> str:
        if not state["signal"]:
            return WATCH
        if state["due"]:
            return PUT
        return WAIT if _held(state) else PICK

    def subtasks(self, task: str) -> Sequence[str]:
        return (WATCH, PICK, WAIT, PUT)

    def goal(self, state: State) -> str:
        return PUT

    def act(self, state: State, subtask: str) -> np.ndarray:
        tcp, gripper = state["tcp_m"], state["gripper_m"]
        if subtask == PICK:
            return pick(tcp, gripper, state["cube_m"])
        if subtask == PUT:
            return put(tcp, gripper, state["place_m"], state["cube_m"])
        if subtask == WAIT and _held(state):
            goal = self.goal_m(state, subtask)
            return hold() if goal is None else towards(tcp, goal, GRIPPER_CLOSED)
        return hold(GRIPPER_CLOSED if _held(state) else GRIPPER_OPEN)

    def valid(self, state: State, subtask: str) -> bool:
        if subtask in (WAIT, PUT):
            return _held(state) or (subtask == PUT and state["due"])
        return subtask == PICK if state["signal"] else subtask in (WATCH, PICK)

    def target_m(self, state: State, subtask: str) -> np.ndarray | None:
        return {PICK: state["cube_m"], WAIT: state["place_m"], PUT: state["place_m"]}.get(subtask)

    def goal_m(self, state: State, subtask: str) -> np.ndarray | None:
        tcp, place = state["tcp_m"], state["place_m"]
        if subtask == PICK:
            return None if _held(state) else pick_goal_m(tcp, state["cube_m"])
        if subtask == WAIT and _held(state):
            goal = carry_goal_m(tcp, place, state["cube_m"])
            return np.array([*goal[:2], max(goal[2], CLEAR_M)])
        return carry_goal_m(tcp, place, state["cube_m"]) if subtask == PUT and _held(state) else None

    def advance(self, state: State, action: np.ndarray) -> State:
        after, cube = carried(state, action, state["cube_m"])
        return {**state, **after, "cube_m": cube}

    def evidence(self, state: State) -> str:
        return "green lamp" if state["signal"] else ""

    def things(self, state: State) -> Mapping[str, np.ndarray]:
        return {
            "green lamp" if state["signal"] else "white lamp": state["lamp_m"],
            "blue cube": state["cube_m"],
            "red disc": state["place_m"],
        }


def _held(state: State) -> bool:
    return is_held(state["tcp_m"], state["gripper_m"], state["cube_m"])


TIMED_TRANSFER = TimedTransfer()

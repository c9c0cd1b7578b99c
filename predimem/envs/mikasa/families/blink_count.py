"""BlinkCountButtonPress*: a blue lamp blinks N times; then a red button is pressed N times, and a black one once.

What is seen: the blue lamp is lit for three steps at each blink; a second lamp is red until the presses are due, and
green from then on. A press counts once the hand has been raised by 0.085 m after it. What a learner must remember: how
often the lamp blinked, and how often it has pressed. Neither is in any later image, so the first image of each blink
and of each press is to be remembered (`evidence`), and the two numbers of remembered images have to be compared
whenever the hand is raised. Nothing depends on a clock: each subtask waits where it ends until the next one is named.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from predimem.envs.mikasa.families.family import EpisodeReport, Family, State
from predimem.envs.mikasa.families.motion import hold, towards
from predimem.envs.mikasa.families.press import press, press_goal_m
from predimem.envs.mikasa.families.scene import BULB_M, position_m, robot_state

WATCH, RAISE = "watch the lamp", "raise the hand"
PRESS_RED, PRESS_BLACK = "press the red button", "press the black button"
RAISED_M = 0.2  # a press counts from about 0.17 m on

LEVELS = ("Easy", "Medium", "Hard", "Easy-Long", "Medium-Long", "Hard-Long")


class BlinkCount(Family):
    """Its state has, beside `scene.robot_state`:

    ready: whether the presses are due. lit: whether the blue lamp is. blink: how many blinks have begun. lamp_m,
    phase_lamp_m: float64 [3], the bulbs, world frame. blinks, raw_presses, presses: int, the presses
    without and with the hand raised after them; pending: whether the hand has to be raised. red_m, black_m: float64
    [3], the tops of the unpressed buttons, world frame.
    """

    name = "BlinkCount"
    tasks = tuple(f"BlinkCountButtonPress{level}-VLA-v0" for level in LEVELS)

    def state(self, base: Any, step: int) -> dict[str, Any]:
        starts = np.asarray(base.blink_start_steps[0].cpu())
        ends = starts + np.asarray(base.blink_on_schedule[0].cpu())
        return robot_state(base, step) | {
            "ready": step >= int(base.cue_steps_per_env[0]),
            "lit": bool(((starts <= step) & (step < ends)).any()),
            "blink": int(((starts <= step) & (starts < ends)).sum()),
            "lamp_m": position_m(base.lamp_body) + BULB_M,
            "phase_lamp_m": position_m(base.phase_lamp_body) + BULB_M,
            "blinks": int(base.target_blinks[0]),
            "presses": int(base.press_count[0]),
            "raw_presses": int(base.raw_press_count[0]),
            "pending": bool(base.pending_press[0]),
            "submitted": bool(base.submit_attempted[0]),
            "red_m": np.array([*base.button_xy[0].tolist(), float(base.button_top_z[0])]),
            "black_m": np.array([*base.confirm_button_xy[0].tolist(), float(base.confirm_button_top_z[0])]),
        }

    def subtask(self, state: State) -> str:
        if not state["ready"]:
            return WATCH
        if state["pending"]:
            return RAISE
        return PRESS_RED if state["presses"] < state["blinks"] else PRESS_BLACK

    def subtasks(self, task: str) -> Sequence[str]:
        return (WATCH, PRESS_RED, RAISE, PRESS_BLACK)

    def goal(self, state: State) -> str:
        return f"press the red button {state['blinks']} times, then the black button"

    def act(self, state: State, subtask: str) -> np.ndarray:
        button = _button_m(state, subtask)
        if button is not None:
            return press(state["tcp_m"], button)
        goal = self.goal_m(state, subtask)
        return hold() if goal is None else towards(state["tcp_m"], goal)

    def valid(self, state: State, subtask: str) -> bool:
        """Watch until the presses are due, then everything else."""
        return (subtask == WATCH) != state["ready"] and subtask in self.subtasks("")

    def target_m(self, state: State, subtask: str) -> np.ndarray | None:
        return _button_m(state, subtask)

    def goal_m(self, state: State, subtask: str) -> np.ndarray | None:
        if subtask == RAISE and state["ready"]:
            return np.array([*state["tcp_m"][:2], max(RAISED_M, state["tcp_m"][2])])
        button = _button_m(state, subtask)
        return None if button is None else press_goal_m(state["tcp_m"], button)

    def evidence(self, state: State) -> str:
        """Each blink, and each press until the hand has been raised."""
        if state["lit"]:
            return f"blink {state['blink']}"
        return f"press {state['raw_presses']}" if state["pending"] else ""

    def things(self, state: State) -> Mapping[str, np.ndarray]:
        return {
            "lit lamp" if state["lit"] else "dark lamp": state["lamp_m"],
            "green lamp" if state["ready"] else "red lamp": state["phase_lamp_m"],
            "red button": state["red_m"],
            "black button": state["black_m"],
        }

    def report(self) -> EpisodeReport:
        return Presses()

    def notes(self, state: State) -> dict[str, Any]:
        return {"blinks": state["blinks"]}


def _button_m(state: State, subtask: str) -> np.ndarray | None:
    if not state["ready"]:
        return None
    return {PRESS_RED: state["red_m"], PRESS_BLACK: state["black_m"]}.get(subtask)


class Presses(EpisodeReport):
    """How many presses there were, of how many."""

    def update(self, state: State, success_now: bool) -> Mapping[str, float | str | bool]:
        """`presses` and `blinks`; `mistake` at the step at which an episode fails, which ends it."""
        presses, blinks = state["raw_presses"], state["blinks"]
        report: dict[str, float | str | bool] = {"presses": float(presses), "blinks": float(blinks)}
        if presses > blinks or (state["submitted"] and not success_now):
            report["mistake"] = f"pressed the red button {presses} times; the lamp had blinked {blinks} times"
        return report


BLINK_COUNT = BlinkCount()

"""BunchOfColors, SeqOfColors and ChainOfColors: touch all cubes that were shown, press the button and lift the arm.

In BunchOfColors the cubes are shown together, and any order of touches counts: the script touches them in the order in
which the suite lists the colours, which the images tell. In the two others they are shown one after another and have
to be touched in that order. The instruction of SeqOfColors says "in any order", but the suite fails every other one.

A touch is at rest within 2 cm of a point just above the cube, and a wrong one fails the episode. Nothing marks a cube
that was touched, and nothing shows a press of the button later: both have to be remembered.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from predimem.envs.mikasa.families.family import EpisodeReport, Family, State
from predimem.envs.mikasa.families.motion import hold, towards
from predimem.envs.mikasa.families.objects import object_actors, object_labels, shown_position_m, task_object_labels
from predimem.envs.mikasa.families.scene import robot_state
from predimem.envs.mikasa.families.touch_one import WAIT, WATCH, shown, touch

PRESS, LIFT = "press the button", "lift the arm"
BUTTON = "button"

TOUCH_ABOVE_M = 0.034  # over a cube's centre: the suite's own touch point is at 0.025, and counts within 0.02
PRESS_ABOVE_M = 0.012  # over the button's top: a press counts from 0.025 downwards
TRAVEL_Z_M = 0.13  # a touch of what is passed on the way does not count up here
LIFT_Z_M = 0.24  # 0.1 above where a press can have begun, with a margin
FUNNEL_M = (0.010, 0.025)  # in x and y: all the way down within the first, up at TRAVEL_Z_M beyond the second
RISE_M = 0.03  # so far below the funnel the arm only rises; fingers that move across low down push the cubes
ARRIVED_M = 0.006

SIZES = ("3", "5", "7")


class TouchMany(Family):
    """Its state has, beside `scene.robot_state`:

    cue_end_step, appear_step: int; the cue shows at steps < cue_end_step, the cubes to choose from at steps >=
    appear_step. cue_index: int, which cube of the cue shows now, 0 where all show together. labels: tuple of N str such
    as "teal cube". objects_m: float64 [N, 3], NaN for a cube that is hidden at this step. due: indices of the cubes to
    touch, in their order. touched: indices of the cubes that were touched, in the order of their labels. button_m:
    float64 [3], its top. pressed: whether the button was pressed; before the arm is lifted this does not count yet.
    pushed: indices of the cubes that lie so far from their places that a press does not count.
    """

    def __init__(self, name: str, ordered: bool):
        """ordered: the cubes are shown one after another, and count in that order."""
        self.name = name
        self.tasks = tuple(f"{name}{size}{length}-VLA-v0" for length in ("", "-Long") for size in SIZES)
        self._ordered = ordered

    def state(self, base: Any, step: int) -> dict[str, Any]:
        cue_end = int(base.cue_steps_per_env[0])
        appear = cue_end + int(base.empty_steps_per_env[0])
        due = base.true_color_indices[0].tolist()
        every = int(base.cue_step_duration_per_env[0]) if self._ordered else cue_end
        button_m = [*base.button_xy[0].tolist(), float(base.button_top_z[0])]
        return robot_state(base, step) | {
            "cue_end_step": cue_end,
            "appear_step": appear,
            "cue_index": step // max(1, every),
            "labels": object_labels(base),
            "objects_m": np.array([shown_position_m(actor) for actor in object_actors(base)]),
            "due": tuple(due if self._ordered else sorted(due)),
            "touched": tuple(np.flatnonzero(base.touched_cubes[0].numpy()).tolist()),
            "button_m": np.array(button_m),
            "pressed": bool(base.pending_press[0] | base.button_pressed[0]),
            "pushed": _pushed(base) if step >= appear else (),
        }

    def subtask(self, state: State) -> str:
        if state["step"] < state["cue_end_step"]:
            return WATCH
        if not _appeared(state):
            return WAIT
        left = [index for index in state["due"] if index not in state["touched"]]
        if left:
            return touch(state["labels"][left[0]])
        return LIFT if state["pressed"] else PRESS

    def subtasks(self, task: str) -> Sequence[str]:
        return (WATCH, WAIT, *map(touch, task_object_labels(task)), PRESS, LIFT)

    def goal(self, state: State) -> str:
        return ", then ".join([*(touch(state["labels"][index]) for index in state["due"]), PRESS])

    def act(self, state: State, subtask: str) -> np.ndarray:
        goal = self.goal_m(state, subtask)
        if goal is None:
            return hold()
        return towards(state["tcp_m"], _by_way_of(state["tcp_m"], goal), arrived_m=ARRIVED_M)

    def valid(self, state: State, subtask: str) -> bool:
        if subtask == WATCH:
            return not _appeared(state)
        return subtask == WAIT or self.goal_m(state, subtask) is not None

    def target_m(self, state: State, subtask: str) -> np.ndarray | None:
        if not _appeared(state):
            return None
        return state["button_m"] if subtask == PRESS else shown(state).get(subtask.removeprefix("touch the "))

    def goal_m(self, state: State, subtask: str) -> np.ndarray | None:
        if subtask == LIFT and _appeared(state):
            return np.array([*state["tcp_m"][:2], LIFT_Z_M])
        target = self.target_m(state, subtask)
        above = PRESS_ABOVE_M if subtask == PRESS else TOUCH_ABOVE_M
        return None if target is None else target + np.array([0.0, 0.0, above])

    def evidence(self, state: State) -> str:
        """Each image of the cue, each touch and the press."""
        if state["step"] < state["cue_end_step"]:
            return f"cue {state['cue_index']}"
        if state["pressed"]:
            return "pressed"
        return f"touched {len(state['touched'])}" if state["touched"] else ""

    def things(self, state: State) -> Mapping[str, np.ndarray]:
        button = {BUTTON: state["button_m"]} if _appeared(state) else {}
        return {**shown(state), **button}

    def report(self) -> EpisodeReport:
        return Touches(self._ordered)

    def notes(self, state: State) -> dict[str, Any]:
        due = [state["labels"][index] for index in state["due"]]
        return {"cue_end_step": state["cue_end_step"], "appear_step": state["appear_step"], "due": due}


BUNCH = TouchMany("BunchOfColors", ordered=False)
SEQ = TouchMany("SeqOfColors", ordered=True)
CHAIN = TouchMany("ChainOfColors", ordered=True)


class Touches(EpisodeReport):
    """How many of the due cubes were touched, the first wrong touch, and the first cube that was pushed away."""

    def __init__(self, ordered: bool) -> None:
        """ordered: a touch is wrong before its turn, too."""
        self._ordered = ordered
        self._right = 0
        self._wrong = 0.0
        self._pushed = 0.0

    def update(self, state: State, success_now: bool) -> Mapping[str, float | str | bool]:
        """`right_touches`: the share of the due cubes, until a `wrong_touch`. `pushed_cube`: whether a cube was too far
        from its place for the button to count. `mistake` at the first step of either."""
        report: dict[str, float | str | bool] = {}
        due, touched = state["due"], set(state["touched"])
        if not self._wrong:
            self._right = _in_turn(due, touched) if self._ordered else len(touched & set(due))
            if wrong := touched - set(due[: self._right] if self._ordered else due):
                self._wrong = 1.0
                right = next((state["labels"][index] for index in due if index not in touched), BUTTON)
                report["mistake"] = f"touched the {state['labels'][min(wrong)]}; the {right} was right"
        if state["pushed"] and not self._pushed:
            self._pushed = 1.0
            pushed = f"pushed the {state['labels'][state['pushed'][0]]} away, so that the button does not count"
            report.setdefault("mistake", pushed)
        return report | {
            "right_touches": self._right / len(due),
            "wrong_touch": self._wrong,
            "pushed_cube": self._pushed,
        }


def _in_turn(due: Sequence[int], touched: set[int]) -> int:
    """How many of the first due cubes were touched before one that was not."""
    return next((turn for turn, index in enumerate(due) if index not in touched), len(due))


def _pushed(base: Any) -> tuple[int, ...]:
    away_m = base.cube_displacements_xy[0].cpu().numpy()
    return tuple(np.flatnonzero(away_m > base.MAX_ALLOWED_CUBE_DISPLACEMENT).tolist())


def _appeared(state: State) -> bool:
    return bool(state["step"] >= state["appear_step"])


def _by_way_of(tcp_m: np.ndarray, goal_m: np.ndarray) -> np.ndarray:
    """float64 [3], where to go next: up, across and down, without a step from one to the other.

    Where a small difference of the position turns "up" into "down", an actor that learns both stands still.
    """
    away_m = float(np.linalg.norm(goal_m[:2] - tcp_m[:2]))
    share = np.clip((away_m - FUNNEL_M[0]) / (FUNNEL_M[1] - FUNNEL_M[0]), 0.0, 1.0)
    height_m = goal_m[2] + share * (TRAVEL_Z_M - goal_m[2])
    across = np.clip(1.0 - (height_m - tcp_m[2]) / RISE_M, 0.0, 1.0)
    return np.array([*(tcp_m[:2] + across * (goal_m[:2] - tcp_m[:2])), height_m])

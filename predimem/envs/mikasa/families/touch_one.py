"""Remember* and FindImposter*: something is shown, then nothing, then all objects, one of which has to be touched.

In Remember{Color,Shape,ShapeAndColor} it is the one that was shown, in FindImposter* the one that was not.

The controller hovers over the object: a touch counts within 5 cm of it, at rest. In Remember* the suite also counts a
touch of the cue itself, before there is anything to remember. In the short tasks its wrapper freezes the arm until the
objects to choose from appear, but in Remember*-Long the arm can move: only a touch among the choices is counted here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from predimem.envs.mikasa.families.family import EpisodeReport, Family, State
from predimem.envs.mikasa.families.motion import hold, towards
from predimem.envs.mikasa.families.objects import object_actors, object_labels, shown_position_m, task_object_labels
from predimem.envs.mikasa.families.scene import robot_state

TOUCH_DISTANCE_M = 0.05  # the suite's own GOAL_THRESH
HOVER_M = 0.03  # above the object's centre
WATCH, WAIT = "watch", "wait"

SIZES = {"Color": ("3", "5", "9"), "Shape": ("3", "5", "9"), "ShapeAndColor": ("3x2", "3x3", "5x3")}


def touch(label: str) -> str:
    return f"touch the {label}"


class TouchOne(Family):
    """Its state has, beside `scene.robot_state`:

    cue_end_step, appear_step: int; the cue shows at steps < cue_end_step, the objects to choose from at steps >=
    appear_step. labels: tuple of N str such as "teal cube". objects_m: float64 [N, 3], NaN for an object that is hidden
    at this step. target_index: int, target_label: str.
    """

    def __init__(self, name: str, lengths: tuple[str, ...], target: Callable[[Any], int]):
        """target: from the suite's environment to the index of the object that has to be touched."""
        self.name = name
        self.tasks = tuple(
            f"{name}{kind}{size}{length}-VLA-v0"
            for kind, sizes in SIZES.items()
            for length in lengths
            for size in sizes
        )
        self._target = target

    def state(self, base: Any, step: int) -> dict[str, Any]:
        labels, target = object_labels(base), self._target(base)
        cue_end = int(base.cue_steps_per_env[0])
        return robot_state(base, step) | {
            "cue_end_step": cue_end,
            "appear_step": cue_end + int(base.empty_steps_per_env[0]),
            "labels": labels,
            "objects_m": np.array([shown_position_m(actor) for actor in object_actors(base)]),
            "target_index": target,
            "target_label": labels[target],
        }

    def subtask(self, state: State) -> str:
        """`watch` while the cue shows, `wait` while the table is empty, then `touch the <label>`."""
        if state["step"] < state["cue_end_step"]:
            return WATCH
        return touch(state["target_label"]) if _appeared(state) else WAIT

    def subtasks(self, task: str) -> Sequence[str]:
        return (WATCH, WAIT, *map(touch, task_object_labels(task)))

    def goal(self, state: State) -> str:
        return touch(state["target_label"])

    def act(self, state: State, subtask: str) -> np.ndarray:
        goal = self.goal_m(state, subtask)
        return hold() if goal is None else towards(state["tcp_m"], goal)

    def valid(self, state: State, subtask: str) -> bool:
        """Before the objects appear, watch and wait are valid (both hold); after that, wait and every touch."""
        return subtask == WAIT or (subtask == WATCH and not _appeared(state)) or _object_m(state, subtask) is not None

    def target_m(self, state: State, subtask: str) -> np.ndarray | None:
        return _object_m(state, subtask)

    def goal_m(self, state: State, subtask: str) -> np.ndarray | None:
        position = _object_m(state, subtask)
        return None if position is None else position + np.array([0.0, 0.0, HOVER_M])

    def evidence(self, state: State) -> str:
        return "cue" if state["step"] < state["cue_end_step"] else ""

    def things(self, state: State) -> Mapping[str, np.ndarray]:
        return shown(state)

    def report(self) -> EpisodeReport:
        return FirstTouch()

    def notes(self, state: State) -> dict[str, Any]:
        return {"cue_end_step": state["cue_end_step"], "appear_step": state["appear_step"]}


def _remembered(base: Any) -> int:
    indices = base.true_shape_indices if hasattr(base, "true_shape_indices") else base.true_color_indices
    return int(indices[0])


def _imposter(base: Any) -> int:
    return int(base.imposter_key[0]) if hasattr(base, "imposter_key") else _remembered(base)


REMEMBER = TouchOne("Remember", ("", "-Long"), _remembered)
FIND_IMPOSTER = TouchOne("FindImposter", ("",), _imposter)


def shown(state: State) -> Mapping[str, np.ndarray]:
    """The objects that are not hidden at this step, by their labels: float64 [3], world frame."""
    placed = zip(state["labels"], state["objects_m"], strict=True)
    return {label: position for label, position in placed if np.isfinite(position).all()}


def _appeared(state: State) -> bool:
    return bool(state["step"] >= state["appear_step"])


def _object_m(state: State, subtask: str) -> np.ndarray | None:
    """Where the object of a touch is; None before the objects appear, and for all other subtasks."""
    label = subtask.removeprefix(touch(""))
    if not _appeared(state) or label == subtask or label not in state["labels"]:
        return None
    return state["objects_m"][state["labels"].index(label)]


class FirstTouch(EpisodeReport):
    """Which object the TCP came near first in an episode. A wrong touch costs nothing in the suite."""

    def __init__(self) -> None:
        self._first: int | None = None
        self._wrong = 0.0

    def update(self, state: State, success_now: bool) -> Mapping[str, float | str | bool]:
        """`wrong_first_touch` and, unless the target is hidden, `target_distance_m` at `state`.

        At the step of a wrong first touch `mistake` says what was touched and what was right. `success_now` counts from
        the step at which there is something to choose from.
        """
        distances = np.linalg.norm(state["objects_m"] - state["tcp_m"], axis=1)
        report: dict[str, float | str | bool] = {"success_now": success_now and _appeared(state)}
        if self._first is None and _appeared(state):
            nearest = int(np.nanargmin(distances))
            if distances[nearest] < TOUCH_DISTANCE_M:
                self._first = nearest
                self._wrong = float(nearest != state["target_index"])
                if self._wrong:
                    report["mistake"] = f"touched the {state['labels'][nearest]}; the {state['target_label']} was right"
        report["wrong_first_touch"] = self._wrong
        target_m = float(distances[state["target_index"]])
        return report if np.isnan(target_m) else report | {"target_distance_m": target_m}

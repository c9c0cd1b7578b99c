"""From a subtask label to one of RoboMME's multiple-choice actions, and to the thing that it is done to."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from predimem.envs.robomme import labels
from predimem.envs.robomme.motions import MotionPlanner

Solve = Callable[[Any, Any], object]
COLOURS = ("red", "blue", "green")
ON_TABLE_M = 0.1  # what lies higher, or this far outside the table, cannot be picked up now
TABLE_M = 1.0
# label -> the words of RoboMME's actions, the first of which that a task has is meant
MEANINGS: tuple[tuple[str, tuple[str, ...]], ...] = (
    (r"pick up the container", ("pick up the container",)),
    (r"put down the container", ("put down the container",)),
    (r"pick up the peg", ("pick up the peg",)),
    (r"pick up the (\w+ ){0,2}cube", ("pick up the cube", "pick up the highlighted cube")),
    (r"place the (\w+ )?cube onto the target", ("place the cube onto the target",)),
    (r"place the (\w+ )?cube onto the table", ("place the cube onto the table",)),
    (r"put the \w+ cube on the table", ("put the cube on the table",)),
    (r"put it into the bin", ("put it into the bin",)),
    (r"move to the top of the (left|right)-side target", ("move to the top of the target",)),
    (r"move to the top of the button", ("move to the top of the button to prepare",)),
    (r"press the button to stop the cube", ("press button to stop the cube",)),
    (r"press the first button", ("press the first button",)),
    (r"press the second button", ("press the second button",)),
    (r"press the button", ("press the button", "press button", "press the button to stop")),
    (r"hook the cube", ("hook the cube to the target with the peg",)),
    (r"close the gripper and push", ("close gripper and push the cube to the target",)),
)


@dataclass(frozen=True, eq=False)
class Meaning:
    """What a label asks for in the scene as it is now.

    action: one of RoboMME's multiple-choice actions. thing: what it is done to; None where the action says it. solve:
    carries it out, as RoboMME's functions do.
    """

    action: str
    thing: Any | None
    solve: Solve

    def is_same(self, other: Meaning | None) -> bool:
        return other is not None and self.action == other.action and self.thing is other.thing


def find_meaning(label: str, task: str, planner: MotionPlanner) -> Meaning | None:
    """None where a label means to stay, or nothing that can be done."""
    from robomme.robomme_env.utils.vqa_options import get_vqa_options  # type: ignore[import-not-found]

    chosen: dict[str, Any] = {}
    options = {option["action"]: option for option in get_vqa_options(planner.env, planner.solver, chosen, task)}
    option = next((options[name] for name in _names(label) if name in options), None)
    if option is None:
        return None
    if "available" in option:
        thing = find_thing(label, option["available"], planner.env.unwrapped)
        if thing is None:
            return None
        chosen["obj"] = thing
    return Meaning(option["action"], chosen.get("obj"), lambda env, solver: option["solve"]())


def find_thing(label: str, available: Sequence[Any], simulation: Any) -> Any | None:
    """The one of the things that a label means: by its place, its side or its colour. None where there is none."""
    if (place := labels.cell_in(label)) is not None:
        middle = labels.middle(*place)
        return min(available, key=lambda thing: float(np.linalg.norm(labels.pixel(thing, simulation) - middle)))
    if (side := re.search(r"(left|right)-side", label)) is not None:
        return getattr(simulation, f"target_{side[1]}")
    within_reach = [thing for thing in available if _within_reach(thing)]
    colour = next((name for name in COLOURS if name in label.split()), None)
    if colour is not None:
        of_colour = getattr(simulation, f"{colour}_cubes", [])
        within_reach = [thing for thing in within_reach if any(thing is one for one in of_colour)]
    return next(iter(within_reach), None)


def _names(label: str) -> tuple[str, ...]:
    return next((names for words, names in MEANINGS if re.match(words, label)), ())


def _within_reach(thing: Any) -> bool:
    position = np.asarray(thing.pose.p[0].cpu())
    return bool(position[2] < ON_TABLE_M and np.abs(position[:2]).max() < TABLE_M)

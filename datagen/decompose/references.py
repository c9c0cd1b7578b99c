"""References: names for places that neither the instruction nor the first image can tell.

A decomposition is made before anything has moved. What lies in a closed drawer is not known then, so a step names the
drawer by a description ("empty_drawer"), and whatever executes the steps finds out by looking which drawer that is.
`resolve` gives the true answer, for tests and for comparing a decomposition with a task.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest

from datagen.decompose.steps import Step
from predimem.envs.arena.fixtures import DRAWERS, JOINTS, PLACES
from predimem.envs.arena.subtasks import Skill, Subtask
from predimem.envs.arena.task import Variant


@dataclass(frozen=True)
class Reference:
    """A description that stands for one of several places.

    called: the names that people use for it; the usual one is first.
    note: what it is, and when it can be told which place it means.
    candidates: the places that it may mean.
    """

    name: str
    called: tuple[str, ...]
    note: str
    candidates: tuple[str, ...]


_BASKETS = ("basket_left", "basket_right")
_PLATES = ("plate_left", "plate_right")
_SHELVES = ("shelf_left", "shelf_right")
_HALVES = tuple(f"{name}_{side}" for name in JOINTS for side in ("left", "right"))

REFERENCES = (
    Reference(
        "occupied_drawer",
        ("occupied drawer", "drawer that is not empty", "drawer that is occupied", "drawer"),
        "the one drawer that holds something already; known once all drawers have been looked into",
        DRAWERS,
    ),
    Reference(
        "empty_drawer",
        ("empty drawer", "drawer that is empty", "empty one", "drawer"),
        "the one drawer that holds nothing; known once all drawers have been looked into",
        DRAWERS,
    ),
    Reference(
        "marked_basket",
        ("marked basket", "red mat", "mat", "red mark", "mark"),
        "the basket that has a red mat on its floor",
        _BASKETS,
    ),
    Reference(
        "marked_half",
        ("marked side", "marked half", "red mat", "mat", "red mark", "mark"),
        "the half, left or right, of the drawer or microwave that has a red mat on it; known once it is open",
        _HALVES,
    ),
    Reference(
        "other_plate",
        ("other plate", "other one", "empty plate", "plate that is empty", "plate that they are not on"),
        "the plate that nothing is on at the start",
        _PLATES,
    ),
    Reference(
        "other_shelf",
        (
            *("other shelf", "other shelf cabinet", "other cabinet", "other one", "empty shelf", "empty shelf cabinet"),
            *("shelf that is empty", "shelf cabinet that is empty", "shelf cabinet that they are not in"),
        ),
        "the shelf cabinet that nothing is in at the start",
        _SHELVES,
    ),
)


def resolve(reference: str, variant: Variant) -> str | None:
    """The place that a reference means in a variant; None where none is meant, or several."""
    used, marked = set(variant.start.values()), set(variant.mats)
    answers = {
        "occupied_drawer": used & set(DRAWERS),
        "empty_drawer": set(DRAWERS) - used,
        "marked_basket": marked & set(_BASKETS),
        "marked_half": marked & set(_HALVES),
        "other_plate": set(_PLATES) - used if used & set(_PLATES) else set(),
        "other_shelf": set(_SHELVES) - used if used & set(_SHELVES) else set(),
    }
    if reference not in answers:
        raise ValueError(f"unknown reference {reference!r}: there are {', '.join(answers)}")
    (answer, *more) = sorted(answers[reference]) or [None]
    return None if more else answer


def resolve_steps(steps: Sequence[Step], variant: Variant) -> tuple[Step, ...]:
    """The same steps with every reference replaced by the place that it means in `variant`.

    Raises ValueError where a reference means nothing there.
    """
    names = {reference.name for reference in REFERENCES}
    resolved = []
    for step in steps:
        if step.target in names:
            place = resolve(step.target, variant)
            if place is None:
                raise ValueError(f"step {step.step_id}: {step.target!r} does not mean exactly one place in this scene")
            step = replace(step, target=place)
        resolved.append(step)
    return tuple(resolved)


def agrees(steps: Sequence[Step], variant: Variant) -> bool:
    """Whether the steps, resolved, are those of the task: the same skills on the same targets in the same order.

    A Place of the task whose object nothing picked before (tasks 4 and 5) counts as Move, then Place.
    """
    return [(s.planner, s.target) for s in resolve_steps(steps, variant)] == expected_steps(variant.subtasks)


def disagreement(steps: Sequence[Step], variant: Variant) -> str:
    """The first difference between the steps and the subtasks of a task, in one sentence; "" if they agree."""
    try:
        found = [f"{step.planner} {step.target}" for step in resolve_steps(steps, variant)]
    except ValueError as error:  # a reference that means nothing here
        return str(error)
    expected = [f"{skill} {target}" for skill, target in expected_steps(variant.subtasks)]
    for number, (is_, should) in enumerate(zip_longest(found, expected), 1):
        if is_ is None:
            return f"the task goes on with step {number}, {should}"
        if should is None:
            return f"the task ends before step {number}, {is_}"
        if is_ != should:
            named = steps[number - 1].target
            shown = is_ if is_.endswith(f" {named}") else f"{is_} (the {named} here)"
            return f"step {number} is {shown}, and the task's is {should}"
    return ""


def expected_steps(subtasks: Sequence[Subtask]) -> list[tuple[Skill, str]]:
    """(skill, target) of the subtasks of a task, with every pick made explicit."""
    expected: list[tuple[Skill, str]] = []
    held = ""
    for subtask in subtasks:
        if subtask.skill is Skill.PLACE:
            if held != subtask.object:
                expected.append((Skill.MOVE, subtask.object))
            held = ""
        elif subtask.skill is Skill.MOVE:
            held = subtask.object
        expected.append((subtask.skill, subtask.target))
    return expected


assert all(name in PLACES for reference in REFERENCES for name in reference.candidates)

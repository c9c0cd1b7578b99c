"""Visits that nobody announces: somebody moves an object on the table, or opens a drawer and shuts it again.

They change nothing that the task asks for, and come while the robot is busy elsewhere, or in the pause.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from predimem.envs.arena.fixtures import DRAWERS, PLACES
from predimem.envs.arena.subtasks import Skill, Subtask
from predimem.envs.arena.variant import Variant
from predimem.envs.arena.visits import PULLED_M, SHUT_M, Carry, Slide, Visit

DELAY_STEPS = (0, 10)  # after the stage became due
LATE_STEPS = (900, 1000)  # in the pause, after the visits that are announced
NEXT_STEPS = 2  # subtasks, from the one that is due, that a visit keeps out of the way of


def strangers(variant: Variant, objects: tuple[str, ...], rng: np.random.Generator) -> Variant:
    """The variant with one visit to a drawer and, where an object can be spared, one to the table."""
    visits = list(variant.visits)
    for choices in (_drawer_visits(variant), _table_visits(variant, objects)):
        taken = {visit.stage for visit in visits[len(variant.visits) :]}
        free = [choice for choice in choices if choice[0] not in taken]
        if free:
            stage, act = free[int(rng.integers(len(free)))]
            acts = (Slide(act, PULLED_M), Slide(act, SHUT_M)) if act in DRAWERS else (Carry(act, "table"),)
            paused = any(pause.stage == stage for pause in variant.pauses)
            visits.append(Visit(stage, int(rng.integers(*(LATE_STEPS if paused else DELAY_STEPS))), acts))
    return replace(variant, visits=tuple(sorted(visits, key=lambda visit: (visit.stage, visit.delay_steps))))


def _drawer_visits(variant: Variant) -> list[tuple[int, str]]:
    """(stage, drawer): while the robot is not at the cabinet, or in the pause; not to the drawer that it has just shut,
    as the subtask before a pause is still to be true in it."""
    stages = range(1, len(variant.subtasks) - NEXT_STEPS)
    elsewhere = [i for i in stages if not any(map(_at_cabinet, variant.subtasks[i : i + NEXT_STEPS]))]
    free = [(stage, drawer) for stage in elsewhere for drawer in DRAWERS]
    for pause in variant.pauses:
        free = [choice for choice in free if choice[0] != pause.stage]
        last = variant.subtasks[pause.stage - 1]
        free += [(pause.stage, drawer) for drawer in DRAWERS if drawer != last.target]
    return free


def _table_visits(variant: Variant, objects: tuple[str, ...]) -> list[tuple[int, str]]:
    """(stage, object): what has not left its place on the table yet and is not due for a while."""
    moved = {act.object for visit in variant.visits for act in visit.acts if isinstance(act, Carry)}
    spare = [name for name in objects if name not in variant.start and name not in moved]
    return [
        (stage, name)
        for stage in range(1, len(variant.subtasks) - NEXT_STEPS)
        for name in spare
        if not _used(name, variant.subtasks[: stage + NEXT_STEPS])
    ]


def _used(name: str, subtasks: Sequence[Subtask]) -> bool:
    return any(name in (subtask.object, subtask.target) for subtask in subtasks)


def _at_cabinet(subtask: Subtask) -> bool:
    if subtask.skill in (Skill.OPEN, Skill.CLOSE):
        return subtask.target in DRAWERS
    return subtask.skill is Skill.PLACE and PLACES[subtask.target].frame in DRAWERS

"""Puts modules together: their order, where the pause is, and when somebody comes, all from random numbers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import TypeVar

import numpy as np

from predimem.envs.arena.long.module import Module, Part
from predimem.envs.arena.long.strangers import strangers
from predimem.envs.arena.subtasks import Skill
from predimem.envs.arena.variant import Variant
from predimem.envs.arena.visits import Pause, Visit

T = TypeVar("T")
PAUSE_STEPS = 1200  # a minute
WAIT, MEANWHILE = "Then wait for a minute", ", in which somebody "
FIRST_VISIT_STEPS = (100, 400)  # after the beginning of the pause
VISIT_EVERY_STEPS = 200  # what somebody does takes less than that


def compose(modules: Sequence[Module], objects: tuple[str, ...], rng: np.random.Generator) -> Variant:
    """Parts before the pause in a random order, the pause with its visits, parts after it in a random order.

    objects: of the task; somebody may move those that are not due.
    """
    before, after = _halves(modules, rng)
    subtasks = tuple(subtask for part in (*before, *after) for subtask in part.subtasks)
    paused = sum(len(part.subtasks) for part in before)
    shuffled = _shuffled(modules, rng)
    variant = Variant(
        instruction=_instruction(before, after, [module.told for module in shuffled if module.told]),
        subtasks=subtasks,
        start=dict(chain.from_iterable(module.start.items() for module in modules)),
        mats=tuple(chain.from_iterable(module.mats for module in modules)),
        pauses=(Pause(paused, PAUSE_STEPS),),
        visits=_visits(shuffled, paused, rng),
    )
    return strangers(variant, objects, rng)


def remembered(modules: Iterable[Module]) -> tuple[str, ...]:
    """All that has to be remembered."""
    return tuple(dict.fromkeys(chain.from_iterable(module.remember for module in modules)))


def _halves(modules: Sequence[Module], rng: np.random.Generator) -> tuple[list[Part], list[Part]]:
    """Before and after the pause; on each side there is something.

    Where somebody comes in the pause, a part that ends with shutting something is the last one before it, if there is
    one: after that the arm goes home, and over a container it would be in the way.
    """
    before = [module.before for module in modules if module.before]
    after = [module.after for module in modules if module.after]
    for part in _shuffled([module.free for module in modules if module.free], rng):
        early = bool(rng.integers(2)) if before and after else not before
        (before if early else after).append(part)
    before, after = _shuffled(before, rng), _shuffled(after, rng)
    if any(module.acts for module in modules):
        before.sort(key=lambda part: part.subtasks[-1].skill is Skill.CLOSE)
    return before, after


def _visits(modules: Sequence[Module], paused: int, rng: np.random.Generator) -> tuple[Visit, ...]:
    """In the pause, one after the other."""
    acts = [module.acts for module in modules if module.acts]
    first = int(rng.integers(*FIRST_VISIT_STEPS))
    return tuple(Visit(paused, first + index * VISIT_EVERY_STEPS, each) for index, each in enumerate(acts))


def _instruction(before: Sequence[Part], after: Sequence[Part], told: Sequence[str]) -> str:
    pause = f"{WAIT}."
    if told:
        *others, last = told
        deeds = f"{', '.join(others)} and {last}" if others else last
        pause = f"{WAIT}{MEANWHILE}{deeds}."
    return " ".join([*(part.sentence for part in before), pause, *(part.sentence for part in after)])


def _shuffled(things: Sequence[T], rng: np.random.Generator) -> list[T]:
    return [things[i] for i in rng.permutation(len(things))]

"""What long tasks are made of: a module has a part before the pause and one after it, or one that is free."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from predimem.envs.arena.subtasks import Subtask
from predimem.envs.arena.visits import Act

SIDES = ("left", "right")


@dataclass(frozen=True)
class Part:
    """Subtasks that follow each other at once, and the sentence of the instruction that asks for them."""

    sentence: str
    subtasks: tuple[Subtask, ...]


@dataclass(frozen=True)
class Module:
    """One building block of a long task: what is to be done, and what has to be remembered for it.

    remember: what has to be remembered, each thing in a few words.

    before, after: the parts before and after the pause.
    free: the part that can be on either side of the pause.
    start, mats: as those of a `Variant`.
    acts: what somebody else does in the pause; told: that as a clause of the instruction.
    """

    remember: tuple[str, ...]
    before: Part | None = None
    after: Part | None = None
    free: Part | None = None
    start: Mapping[str, str] = field(default_factory=dict)
    mats: tuple[str, ...] = ()
    acts: tuple[Act, ...] = ()
    told: str = ""


def drawn(rng: np.random.Generator, things: tuple[str, ...], count: int | None = None) -> tuple[str, ...]:
    """All things, or `count` of them, in a random order."""
    return tuple(str(things[i]) for i in rng.permutation(len(things))[:count])


def sides(rng: np.random.Generator) -> tuple[str, str]:
    """Left and right, or right and left."""
    first, second = drawn(rng, SIDES)
    return first, second

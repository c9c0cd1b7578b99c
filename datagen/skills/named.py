"""Subtasks by what a planner calls them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from datagen.arena.subtasks import Subtask
from datagen.arena.task import Task, Variant


def named(task: Task, variant: Variant, label: str) -> Subtask | None:
    """The subtask of a task that `label` stands for, in whichever variant it occurs; None for an unknown label.

    variant: the true one, which is asked first. Many labels leave open what the hidden state decides ("place cookies
    into basket": which one is not said): such a label stands for the true place, so that whoever
    carries it out knows what its speaker did not say. A label that also says the target, as `spoken_label`
    makes it, stands for exactly that one, right or wrong. Case and blanks do not matter.
    """
    wanted = _normal(label)
    everywhere = [subtask for v in (variant, *task.variants) for subtask in v.subtasks]
    by_label = (s for s in everywhere if wanted in (_normal(s.label), _normal(spoken_label(task, s))))
    return next(by_label, None)


def spoken_label(task: Task, subtask: Subtask) -> str:
    """The subtask's label, and its target behind it where the label alone could mean several: "place cookies into
    basket: basket left"."""
    if len({(s.skill, s.target, s.object) for s in _of(task) if s.label == subtask.label}) == 1:
        return subtask.label
    return f"{subtask.label}: {subtask.target.replace('_', ' ')}"


def due_label(env: Any) -> str:
    """The label of the subtask that is due in an `ArenaEnv` of one world; when all were passed, of the last one."""
    subtasks = env.variant().subtasks
    return subtasks[min(int(env.progress.stage[0]), len(subtasks) - 1)].label


def _of(task: Task) -> Iterable[Subtask]:
    return (subtask for variant in task.variants for subtask in variant.subtasks)


def _normal(label: str) -> str:
    return " ".join(label.lower().split())

"""Subtasks by what a planner calls them."""

from __future__ import annotations

from typing import Any

from predimem.core.types import AmbiguousLabel
from predimem.envs.arena.meanings import meanings, refusal
from predimem.envs.arena.subtasks import Subtask
from predimem.envs.arena.task import Task, Variant


def named(task: Task, variant: Variant, label: str) -> Subtask | AmbiguousLabel | None:
    """The subtask of a task that `label` stands for, right or wrong, in whichever variant it occurs (`meanings`).

    A refusal for a label that leaves open what is meant ("place cookies into basket"): whoever carries it out knows the
    true place, but its speaker did not say it. None for an unknown label.

    variant: the true one. Its subtask is given where others mean the same motion.
    """
    meant = meanings(label, (variant, *task.variants))
    if len(meant) > 1:
        return refusal(label, meant)
    return meant[0] if meant else None


def due_label(env: Any) -> str:
    """The label of the subtask that is due in an `ArenaEnv` of one world; when all were passed, of the last one.

    In a pause it is that of the subtask before it, which is done: there is no label for waiting. Where an earlier
    subtask has come undone, it is that one's (`DueStage`).
    """
    subtasks = env.variant().subtasks
    return subtasks[min(env.due.stage, len(subtasks) - 1)].label

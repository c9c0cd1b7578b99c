"""Subtasks by what a planner calls them."""

from __future__ import annotations

from typing import Any

from predimem.core.subtask_labels import calls
from predimem.envs.arena.subtasks import Subtask
from predimem.envs.arena.task import Task, Variant


def named(task: Task, variant: Variant, label: str) -> Subtask | None:
    """The subtask of a task that `label` stands for (`calls`), in whichever variant it occurs; None for an unknown one.

    variant: the true one, which is asked first. A label without its target ("place cookies into basket") therefore
    stands for the true place: whoever carries it out knows what its speaker did not say. A label that says
    the target stands for exactly that one, right or wrong.
    """
    everywhere = (subtask for v in (variant, *task.variants) for subtask in v.subtasks)
    return next((subtask for subtask in everywhere if calls(label, subtask.label)), None)


def due_label(env: Any) -> str:
    """The label of the subtask that is due in an `ArenaEnv` of one world; when all were passed, of the last one."""
    subtasks = env.variant().subtasks
    return subtasks[min(int(env.progress.stage[0]), len(subtasks) - 1)].label

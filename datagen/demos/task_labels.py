"""From the steps that are executed to the labels that the planner learns: the task's own subtasks."""

from __future__ import annotations

from collections.abc import Sequence

from datagen.decompose.references import disagreement
from datagen.decompose.steps import Step
from predimem.envs.arena.subtasks import Skill, Subtask
from predimem.envs.arena.task import Variant


class DisagreementError(ValueError):
    """The steps are not what the task asks for: its labels cannot be given to them."""


def subtask_of_each(steps: Sequence[Step], variant: Variant) -> list[int]:
    """For each step the index of the subtask that it belongs to; two where a Place picks its object itself.

    Raises DisagreementError unless the steps, with their references resolved, are the subtasks of `variant`.
    """
    if difference := disagreement(steps, variant):
        raise DisagreementError(
            f"{len(steps)} steps that are not the {len(variant.subtasks)} subtasks of the task: {difference}"
        )
    indices = [i for i, subtask in enumerate(variant.subtasks) for _ in range(_steps_of(subtask, variant.subtasks[:i]))]
    assert len(indices) == len(steps)
    return indices


def _steps_of(subtask: Subtask, before: Sequence[Subtask]) -> int:
    """2 for a Place whose object is not in the gripper by then, else 1."""
    if subtask.skill is not Skill.PLACE:
        return 1
    held = ""
    for earlier in before:
        if earlier.skill is Skill.PLACE:
            held = ""
        elif earlier.skill is Skill.MOVE:
            held = earlier.object
    return 1 if held == subtask.object else 2

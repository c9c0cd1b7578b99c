"""What a decision that depends on memory draws on: earlier stages that the image does not show any more."""

from __future__ import annotations

from collections.abc import Sequence

from predimem.envs.arena.subtasks import Skill, Subtask


def evidence_stages(subtasks: Sequence[Subtask], index: int) -> tuple[int, ...]:
    """The earlier stages, of each of which something has to be remembered to know that `index` is due.

    counting: every pour so far. transferring: the first pick, which shows what the source was. sequence: pours
    and placements. occlusion: see `_hidden`. Empty where the image is enough, and where what has to be known is
    that nothing has happened yet (the first of two pours).
    """
    subtask = subtasks[index]
    if subtask.memory == "counting":
        return _of(subtasks, index, Skill.POUR)
    if subtask.memory == "transferring":
        return _of(subtasks, index, Skill.MOVE)[:1]
    if subtask.memory == "sequence":
        return _of(subtasks, index, Skill.POUR, Skill.PLACE)
    return _hidden(subtasks, index) if subtask.memory == "occlusion" else ()


def _hidden(subtasks: Sequence[Subtask], index: int) -> tuple[int, ...]:
    """Where a drawer is opened again: the first look into it. Else the placements before, into the same place where
    there are any; else the looks before, except into what stands open now."""
    subtask = subtasks[index]
    opened, placed = _of(subtasks, index, Skill.OPEN), _of(subtasks, index, Skill.PLACE)
    looked = tuple(i for i in opened if subtasks[i].target == subtask.target)
    if subtask.skill is Skill.OPEN:
        return looked or placed or opened
    here = tuple(i for i in placed if _same_place(subtasks[i].target, subtask.target))
    return here or placed or tuple(i for i in looked if i < index - 1)


def _of(subtasks: Sequence[Subtask], index: int, *skills: Skill) -> tuple[int, ...]:
    return tuple(i for i in range(index) if subtasks[i].skill in skills)


def _same_place(first: str, second: str) -> bool:
    """A half of the drawer and the drawer are one place."""
    return first.startswith(second) or second.startswith(first)

"""Whether the instruction of a task says what its subtasks do, as far as the offline decomposer can tell."""

from __future__ import annotations

from itertools import zip_longest

from datagen.decompose.references import expected_steps, resolve_steps
from datagen.decompose.rules import decompose
from datagen.decompose.sentences import RulesError
from datagen.decompose.vocabulary import vocabulary_of
from predimem.core.own_code import SUFFIX
from predimem.envs.arena.subtasks import Skill
from predimem.envs.arena.task import Task, Variant
from predimem.envs.arena.tasks import task_of

Deed = tuple[Skill, str]  # a skill and its target


def own_task(key: str) -> Task:
    """A task of the arena by whatever it is called; one of a file only if its instruction and its subtasks agree.

    Raises ValueError for an unknown task, and for a faulty file.
    """
    task = task_of(key)
    if key.endswith(SUFFIX):
        try:
            check_instruction(task)
        except ValueError as error:
            raise ValueError(f"{key}: {error}") from None
    return task


def check_instruction(task: Task) -> None:
    """Raises ValueError where an instruction asks for other steps than the subtasks are.

    An instruction that the decomposer does not understand passes: it may say the same in free words.
    """
    for number, variant in enumerate(task.variants, start=1):
        try:
            said = decompose(variant.instruction, vocabulary_of(task))
        except RulesError:
            continue
        asked = [(step.planner, step.target) for step in resolve_steps(said, variant)]
        if asked != expected_steps(variant.subtasks):
            where = f"variant {number}" if len(task.variants) > 1 else "its variant"
            raise ValueError(f"task {task.name}: {where}: {_difference(asked, variant)}")


def _difference(asked: list[Deed], variant: Variant) -> str:
    steps = expected_steps(variant.subtasks)
    first = next(i for i, (a, b) in enumerate(zip_longest(asked, steps)) if a != b)
    return (
        f"the instruction and the subtasks disagree: as step {first + 1} the instruction asks for "
        f"{_words(asked, first)}, the subtasks for {_words(steps, first)}. The instruction is "
        f"{variant.instruction!r}; let both say the same in the same order"
    )


def _words(deeds: list[Deed], index: int) -> str:
    return f"{deeds[index][0]} {deeds[index][1]}" if index < len(deeds) else "nothing more"

"""Decomposition without a model, for the instructions of the arena and for wording that is close to theirs.

An instruction is cut into clauses of a few known forms (`sentences`), which are composed into steps (`composer`).
It needs no network, looks at no image, and gives the same steps each time. What it does not know it refuses: steps
that were not asked for are worse than none. Free wording is for a vision-language model (`vlm`).
"""

from __future__ import annotations

from difflib import get_close_matches

from datagen.decompose.check import check
from datagen.decompose.composer import Composer
from datagen.decompose.sentences import RulesError, plain, read_clauses
from datagen.decompose.steps import Step
from datagen.decompose.vocabulary import Vocabulary
from predimem.envs.arena.tasks import TASKS


def decompose(instruction: str, vocabulary: Vocabulary) -> tuple[Step, ...]:
    """The steps that an instruction asks for; `check` finds no fault with them.

    Raises RulesError (a ValueError) that says what was not understood, what was expected, and which instruction of the
    arena is the nearest of those that can be carried out in this scene.
    """
    try:
        return _compose(instruction, vocabulary)
    except RulesError as error:
        raise RulesError(
            f"the offline decomposer does not take the instruction {instruction!r}: {error}. "
            f"{_nearest(instruction, vocabulary)}For free wording ask a vision-language model: --endpoint and --model"
        ) from None


def _compose(instruction: str, vocabulary: Vocabulary) -> tuple[Step, ...]:
    composer = Composer(vocabulary)
    for clause in read_clauses(instruction, vocabulary):
        composer.play(clause)
    steps = composer.finish()
    problems = check(steps, vocabulary)
    if problems:
        read = ", ".join(f"{step.planner} {step.target}" for step in steps)
        raise RulesError(f"read as {read or 'nothing'}: {'; '.join(problems)}")
    return steps


def _nearest(instruction: str, vocabulary: Vocabulary) -> str:
    """A sentence with the known instruction that is most like this one; "" if none can be carried out in the scene."""
    known: dict[str, str] = {}
    for told in {variant.instruction: None for task in TASKS for variant in task.variants}:
        try:
            _compose(told, vocabulary)
        except RulesError:
            continue
        known[plain(told)] = told
    nearest = get_close_matches(plain(instruction), known, n=1, cutoff=0)
    return f"The nearest instruction that it knows for this scene is {known[nearest[0]]!r}. " if nearest else ""

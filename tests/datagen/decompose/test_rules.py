"""The rules on the arena's instructions, on paraphrases of them, and on what they must refuse."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from datagen.decompose.check import check
from datagen.decompose.references import agrees
from datagen.decompose.rules import RulesError, decompose
from datagen.decompose.vocabulary import vocabulary_of
from predimem.envs.arena.tasks import TASKS, task_of

PARAPHRASES: list[dict[str, Any]] = json.loads(Path(__file__).with_name("paraphrases.json").read_text())
INSTRUCTIONS = [(task.task_id, i, v.instruction) for task in TASKS for i, v in enumerate(task.variants)]


@pytest.mark.parametrize(("task_id", "variant", "instruction"), INSTRUCTIONS)
def test_every_instruction_of_the_arena(task_id: int, variant: int, instruction: str) -> None:
    task = task_of(task_id)
    steps = decompose(instruction, vocabulary_of(task))
    assert agrees(steps, task.variants[variant])
    assert steps == decompose(instruction, vocabulary_of(task))


@pytest.mark.parametrize("case", PARAPHRASES, ids=lambda case: f"{case['task_id']}-{case['instruction'][:40]}")
def test_paraphrases(case: dict[str, Any]) -> None:
    task = task_of(case["task_id"])
    if case["now"] == "refused":  # the next best to understanding it: never wrong steps
        with pytest.raises(RulesError):
            decompose(case["instruction"], vocabulary_of(task))
    else:
        assert agrees(decompose(case["instruction"], vocabulary_of(task)), task.variants[case["variant"]])


def test_how_many_paraphrases_are_understood() -> None:
    """The figures of docs/datagen.md. Round 0 was written before the rules, the others after them."""
    assert [sum(case["round"] == r for case in PARAPHRASES) for r in range(4)] == [30, 15, 15, 15]
    for when, figures in (("first_run", [27, 6, 6, 8]), ("now", [29, 15, 14, 9])):
        assert [sum(c[when] == "passed" for c in PARAPHRASES if c["round"] == r) for r in range(4)] == figures


def test_the_paraphrases_cover_the_arena() -> None:
    assert {case["task_id"] for case in PARAPHRASES} == {task.task_id for task in TASKS}
    known = {instruction for _, _, instruction in INSTRUCTIONS}
    assert not known & {case["instruction"] for case in PARAPHRASES}


@pytest.mark.parametrize(
    ("task", "instruction", "steps"),
    [
        (1, "Put the cookies in the left basket and the sauce in the right one.",
         "Move cookies, Place basket_left, Move tomato_sauce, Place basket_right"),
        (1, "The cookies and the tomato sauce go into the basket with the red mat, sauce first.",
         "Move tomato_sauce, Place marked_basket, Move cookies, Place marked_basket"),
        (6, "Put the tomato sauce in the drainer after you have poured it over the cookies twice.",
         "Move tomato_sauce, Pour cookies, Pour cookies, Place drainer"),
        (6, "Pour the milk over the cookies three times and put the milk back.",
         "Move milk, Pour cookies, Pour cookies, Pour cookies, Place table"),
        (11, "Put the cookies and the chocolate pudding into the top and the bottom drawer respectively. Close each.",
         "Open top_drawer, Move cookies, Place top_drawer, Close top_drawer, "
         "Open bottom_drawer, Move chocolate_pudding, Place bottom_drawer, Close bottom_drawer"),
        (11, "Pick up the cookies.", "Move cookies"),
        (4, "Find out which drawer holds something, and put the butter in it.",
         "Open top_drawer, Close top_drawer, Open middle_drawer, Close middle_drawer, Open bottom_drawer, "
         "Close bottom_drawer, Open occupied_drawer, Move butter, Place occupied_drawer"),
    ],
)  # fmt: skip
def test_other_wishes_in_the_same_scenes(task: int, instruction: str, steps: str) -> None:
    vocabulary = vocabulary_of(task_of(task))
    found = decompose(instruction, vocabulary)
    assert ", ".join(f"{step.planner} {step.target}" for step in found) == steps
    assert check(found, vocabulary) == []


@pytest.mark.parametrize(
    ("task", "instruction", "message"),
    [
        (1, "Put the cookies and the jam in the left basket.", "unknown word 'jam'; the scene has: cookies, tomato"),
        (1, "Put the cookies in the basket.", "'basket' may be any of basket_left, basket_right"),
        (1, "Don't put the cookies in the left basket.", "do not understand 'not' here"),
        (1, "Put everything except the butter into the marked basket.", "'except'"),
        (1, "Put the cookies.", "put cookies where?"),
        (1, "Put the butter last and the cookies first in the marked basket.", "name things in their order"),
        (1, "   ", "the instruction is empty"),
        (1, "Hello robot, thank you.", "it asks for nothing that the rules know"),
        (5, "Put the butter into the drawer that's in use and close it.", "'in use' is not just one place here"),
        (6, "Pick up the milk and then the cookies.", "the hand holds milk when cookies is due"),
        (6, "Put the cookies in the milk.", "put cookies, milk where?"),
        (8, "Pour sauce over the pudding twice. First put the pudding into the pan.", "Say 'before that'"),
        (10, "Pour wine into the mug twice.", "'mug' may be any of mug_red, mug_white"),
        (11, "Turn on the microwave.", "unknown word 'turn'"),
        (11, "Close the microwave.", "microwave is closed already"),
        (25, "Open the microwave twice.", "what is to be done how often?"),
        (25, "Move the butter or the cream cheese to the other plate.", "do not understand 'or' here"),
    ],
)
def test_what_is_not_understood_is_an_error(task: int, instruction: str, message: str) -> None:
    with pytest.raises(RulesError, match=message):
        decompose(instruction, vocabulary_of(task_of(task)))

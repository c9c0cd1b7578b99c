"""Faults of form and of order, each with its message."""

from __future__ import annotations

import json

import pytest

from datagen.decompose.check import check
from datagen.decompose.steps import AnswerError, Step, parse_steps, to_json
from datagen.decompose.vocabulary import vocabulary_of
from predimem.envs.arena.subtasks import Skill
from predimem.envs.arena.tasks import task_of

LETTERS = {"M": Skill.MOVE, "P": Skill.PLACE, "R": Skill.POUR, "O": Skill.OPEN, "C": Skill.CLOSE}


def steps(text: str) -> tuple[Step, ...]:
    """ "O top_drawer, M butter": numbered steps."""
    parts = [part.split() for part in text.split(",")]
    return tuple(Step(i, "do it", LETTERS[letter], target) for i, (letter, target) in enumerate(parts, 1))


LOOKED = "O top_drawer, C top_drawer, O middle_drawer, C middle_drawer, O bottom_drawer, C bottom_drawer"


@pytest.mark.parametrize(
    ("task", "text"),
    [
        (1, "M cookies, P marked_basket, M tomato_sauce, P basket_left"),
        (4, f"{LOOKED}, O occupied_drawer, M butter, P occupied_drawer, C occupied_drawer"),
        (8, "M chocolate_pudding, P frying_pan, M tomato_sauce, R frying_pan, R frying_pan, P drainer"),
        (12, "O middle_drawer, M cookies, P marked_half, M chocolate_pudding, P middle_drawer, C middle_drawer"),
        (12, "O middle_drawer, M cookies, P middle_drawer_left"),
        (
            12,
            "O middle_drawer, M cookies, P marked_half, M cookies, P marked_half, M cream_cheese, P middle_drawer",
        ),
        (20, "O microwave, M cookies, P marked_half, M chocolate_pudding, P marked_half, C microwave"),
        (25, "M butter, P table, M cream_cheese, P table, M butter, P table"),
    ],
)
def test_what_can_be_done_has_no_faults(task: int, text: str) -> None:
    assert check(steps(text), vocabulary_of(task_of(task))) == []


@pytest.mark.parametrize(
    ("task", "text", "fault"),
    [
        (1, "M cookies, M butter", "step 2 (Move butter): the gripper already holds cookies: place it first"),
        (1, "P basket_left", "step 1 (Place basket_left): the gripper holds nothing: Move to the object to be placed"),
        (
            12,
            "O middle_drawer, M cookies, P marked_half, M chocolate_pudding, P marked_half",
            "(Place marked_half): marked_half has room for one object, and cookies is in it already: Place it in "
            "middle_drawer, where there is room beside",
        ),
        (
            12,
            "O middle_drawer, M cookies, P marked_half, M chocolate_pudding, P middle_drawer, M cream_cheese, "
            "P middle_drawer_left",
            "middle_drawer has room for 2 objects, and chocolate_pudding and cookies are in it already",
        ),
        (15, "M butter, P frying_pan, M milk, P frying_pan", "frying_pan has room for one object, and butter is in it"),
        (6, "R cookies", "step 1 (Pour cookies): the gripper holds nothing: Move to what is to be poured first"),
        (6, "M cookies, R cookies", "the gripper holds cookies, which does not pour; what pours: tomato_sauce, milk"),
        (11, "M cookies, P top_drawer", "top_drawer is closed: Open it before this object is picked up"),
        (12, "M cookies, P marked_half", "middle_drawer is closed"),
        (20, "M cookies, P microwave_left", "microwave is closed"),
        (4, f"{LOOKED}, M butter, P occupied_drawer", "occupied_drawer is closed"),
        (11, "M cookies, O top_drawer", "the gripper holds cookies: things are opened with an empty gripper"),
        (11, "O top_drawer, M cookies, C top_drawer", "things are closed with an empty gripper"),
        (11, "O top_drawer, O top_drawer", "step 2 (Open top_drawer): top_drawer is open already"),
        (11, "C top_drawer", "top_drawer is not open"),
        (4, f"{LOOKED}, O top_drawer, O occupied_drawer", "top_drawer stands open and may be the same"),
        (4, f"{LOOKED}, O occupied_drawer, O top_drawer", "occupied_drawer stands open and may be the same"),
        (4, "O top_drawer, C top_drawer, O occupied_drawer", "first open and close middle_drawer, bottom_drawer"),
        (
            11,
            "O top_drawer, M cookies, P top_drawer, C top_drawer, M cookies",
            "was put behind top_drawer, which is closed",
        ),
        (1, "M banana", "there is no 'banana' here; the targets of Move are: cookies, tomato_sauce, butter"),
        (
            1,
            "M basket_left",
            "Move needs a target of the kind object; basket_left is of the kind place. There are: cookies",
        ),
        (10, "M wine_bottle, P mug_red", "Place needs a target of the kind place; mug_red is of the kind receiver"),
        (1, "O basket_left", "Open needs a target of the kind joint"),
    ],
)
def test_each_fault_is_told(task: int, text: str, fault: str) -> None:
    (problem,) = check(steps(text), vocabulary_of(task_of(task)))
    assert fault in problem


def test_step_ids_count_from_one() -> None:
    vocabulary = vocabulary_of(task_of(1))
    (problem,) = check([Step(1, "a", Skill.MOVE, "butter"), Step(3, "b", Skill.PLACE, "table")], vocabulary)
    assert "step_id must count 1, 2, ... 2 in order; got 1, 3" in problem
    assert check([], vocabulary) == ["there are no steps: give at least one"]


def test_the_json_form() -> None:
    two = steps("M butter, P table")
    assert json.loads(to_json(two))["subtasks"][1] == {
        "step_id": 2, "subtask": "do it", "planner": "Place", "target": "table",
    }  # fmt: skip
    assert parse_steps(to_json(two)) == two


@pytest.mark.parametrize(
    ("text", "faults"),
    [
        ("```json\n{}\n```", ["not JSON (Expecting value at character 0)"]),
        ("[]", ["one field subtasks, a list of steps; got list"]),
        ('{"subtasks": [], "note": 1}', ["got the fields subtasks, note"]),
        ('{"subtasks": [7, {"step_id": 1}]}', ["entry 1 of subtasks: expected an object", "got step_id"]),
        (
            '{"subtasks": [{"step_id": true, "subtask": " ", "planner": "move", "target": null}]}',
            ["step_id must be a whole number, not True", "subtask must be a text", "target must be a text",
             "unknown planner 'move'"],
        ),
    ],
)  # fmt: skip
def test_faults_of_form_are_all_told(text: str, faults: list[str]) -> None:
    with pytest.raises(AnswerError) as caught:
        parse_steps(text)
    assert len(caught.value.problems) == len(faults)
    for problem, fault in zip(caught.value.problems, faults, strict=True):
        assert fault in problem

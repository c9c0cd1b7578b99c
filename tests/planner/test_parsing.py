"""Answers of the planner, good and bad."""

from __future__ import annotations

import json

import numpy as np
import pytest

from planner.parsing import AnswerError, parse_answer, parse_plan
from planner.prompt import render_answer
from predimem.core.types import Frame, MemorySnapshot

FRAMES = tuple(Frame(step, step / 20, {"c": np.zeros((2, 2, 3), np.uint8)}) for step in (7, 8, 9))
SNAPSHOT = MemorySnapshot("episode", 9, "do it", FRAMES)


def test_positions_become_absolute_steps():
    plan = parse_plan(render_answer("touch the red cube", [1, 3]), SNAPSHOT)
    assert plan.subtask == "touch the red cube"
    assert plan.keyframe_steps == (7, 9)
    assert (plan.episode_id, plan.step, plan.error) == ("episode", 9, None)


def test_what_comes_next_is_told_apart_from_the_subtask():
    said = "touch the red cube; then touch the teal cube; then press the button"
    plan = parse_plan(render_answer(said, []), SNAPSHOT)
    assert plan.subtask == "touch the red cube"
    assert plan.next_subtasks == ("touch the teal cube", "press the button")
    assert plan.said == said


def test_the_answer_is_the_papers_json():
    assert render_answer("pick cookies", []) == '{"current_primitive":"pick cookies","keyframe_positions":[]}'


def test_order_and_blanks_do_not_matter():
    text = ' {"keyframe_positions": [2, 1, 2],\n "current_primitive": "wait"}\n'
    assert parse_answer(text, window=3) == ("wait", (1, 2))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "not JSON"),
        ("touch the red cube", "not JSON"),
        ('{"current_primitive":"wait","keyframe_positions":[]', "not JSON"),
        ('{"current_primitive":"wait","keyframe_positions":[]} done', "not JSON"),
        ('```json\n{"current_primitive":"wait","keyframe_positions":[]}\n```', "not JSON"),
        ("[" * 100_000, "not JSON"),
        ("[]", "expected a JSON object, got list"),
        ('"wait"', "expected a JSON object, got str"),
        ('{"current_primitive":"wait"}', "exactly the fields"),
        ('{"current_primitive":"wait","keyframe_positions":[],"why":"x"}', "exactly the fields"),
        ('{"current_primitive":"a","current_primitive":"b","keyframe_positions":[]}', "twice"),
        ('{"current_primitive":null,"keyframe_positions":[]}', "non-empty string"),
        ('{"current_primitive":" ","keyframe_positions":[]}', "non-empty string"),
        ('{"current_primitive":"wait; then ","keyframe_positions":[]}', "non-empty string"),
        ('{"current_primitive":["wait"],"keyframe_positions":[]}', "non-empty string"),
        ('{"current_primitive":"wait","keyframe_positions":null}', "list of integers"),
        ('{"current_primitive":"wait","keyframe_positions":1}', "list of integers"),
        ('{"current_primitive":"wait","keyframe_positions":[1.0]}', "list of integers"),
        ('{"current_primitive":"wait","keyframe_positions":["1"]}', "list of integers"),
        ('{"current_primitive":"wait","keyframe_positions":[true]}', "list of integers"),
        ('{"current_primitive":"wait","keyframe_positions":[0]}', "position 0 lies outside"),
        ('{"current_primitive":"wait","keyframe_positions":[1,4]}', "position 4 lies outside"),
        ('{"current_primitive":"wait","keyframe_positions":[-1]}', "position -1 lies outside"),
    ],
)
def test_bad_answers_are_seen(text, says):
    with pytest.raises(AnswerError, match=says):
        parse_answer(text, window=3)
    plan = parse_plan(text, SNAPSHOT)
    assert plan.subtask is None and plan.keyframe_steps == ()
    assert plan.text == text and plan.error and says in plan.error


@pytest.mark.parametrize("word", ["touch the teal cube", 'say "hi"\\', "naïve 日本"])
def test_any_subtask_survives_the_round_trip(word):
    assert parse_answer(render_answer(word, [2]), window=2) == (word, (2,))
    assert json.loads(render_answer(word, [2]))["current_primitive"] == word

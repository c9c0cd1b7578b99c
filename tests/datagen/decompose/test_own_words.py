"""Instructions in words of their own, written from what the tasks mean and before the rules were looked at.

`own_words.json` has for each the task, whose scene it is about, and the steps that it means; null where no steps can be
told from it. A change of the rules may raise the number that is understood, and must not make one of them wrong.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from datagen.decompose.references import resolve_steps
from datagen.decompose.rules import RulesError, decompose
from datagen.decompose.steps import Step
from datagen.decompose.vocabulary import vocabulary_of
from predimem.envs.arena.subtasks import Skill
from predimem.envs.arena.tasks import TASKS, task_of

CASES: list[dict[str, Any]] = json.loads(Path(__file__).with_name("own_words.json").read_text())
UNDERSTOOD = 31  # of 116; docs/guides/data.md has this figure


def verdict(case: dict[str, Any]) -> str:
    """ "right", "wrong" or "refused"; in every variant of the task the steps are carried out at the same places."""
    task = task_of(case["task"])
    try:
        found = decompose(case["instruction"], vocabulary_of(task))
    except RulesError as error:
        assert "--endpoint and --model" in str(error)
        return "refused"
    if case["steps"] is None:
        return "wrong"
    words = [step.split() for step in case["steps"].split(", ")]
    meant = [Step(number, "meant", Skill(skill), target) for number, (skill, target) in enumerate(words, 1)]
    same = all(
        [(s.planner, s.target) for s in resolve_steps(found, variant)]
        == [(s.planner, s.target) for s in resolve_steps(meant, variant)]
        for variant in task.variants
    )
    return "right" if same else "wrong"


@pytest.mark.slow
def test_none_is_wrong() -> None:
    verdicts = {case["instruction"]: verdict(case) for case in CASES}
    counts = Counter(verdicts.values())
    print(dict(counts))
    assert [said for said, found in verdicts.items() if found == "wrong"] == []
    assert counts["right"] == UNDERSTOOD


def test_there_are_a_hundred_and_each_task_has_some() -> None:
    assert len({case["instruction"] for case in CASES}) == len(CASES) == 116
    counts = Counter(case["task"] for case in CASES)
    assert set(counts) == {task.task_id for task in TASKS} and min(counts.values()) >= 3

"""A planner that plans ahead: its labels, what its memory says and what its prompt asks for."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from memory_bank import MemoryConfig
from planner.ahead import planned_ahead
from planner.dataset import DatasetConfig, SampleMaker
from planner.prompt import PromptConfig, fixed_phrases, system_prompt
from planner.train_config import TrainConfig
from tests.planner.test_nominations import poured

SPANS = (
    (0, 10, "watch"),
    (10, 30, "touch red"),
    (30, 50, "touch blue"),
    (50, 60, "touch lime"),
    (60, 70, "press"),
    (70, 80, "touch red"),
)
PLANS = (
    "watch",
    "touch red; then touch blue; then touch lime",
    "touch blue; then touch lime",
    "touch lime",
    "press",
    "touch red",
)


def test_a_subtask_is_named_with_those_that_follow_it_and_match():
    episode = poured(*SPANS)
    planned = planned_ahead(episode, ("touch *",))
    assert tuple(span.label for span in planned.subtasks) == PLANS
    assert [(span.start, span.end) for span in planned.subtasks] == [span[:2] for span in SPANS]
    assert planned_ahead(episode, ()) is episode
    whole = planned_ahead(episode, ("*",)).subtasks[0].label
    assert whole.split("; then ") == [label for *_, label in SPANS]


def test_an_episode_that_a_planner_drove_is_refused():
    episode = replace(poured(*SPANS), metadata={"spoken": [[0, "watch"]]})
    with pytest.raises(ValueError, match=r"Pour seed 1: a planner drove it.*dataset\.plan_ahead empty"):
        planned_ahead(episode, ("touch *",))


def test_labels_and_text_memory_say_what_comes_next():
    memory = MemoryConfig(recent_window=2, past_subtasks=True)
    config = DatasetConfig(plan_ahead=("touch *",))
    samples = {s.snapshot.step: s for s in SampleMaker([poured(*SPANS)], memory, config).draw(500, random.Random(0))}
    assert samples[20].subtask == PLANS[1] and samples[45].subtask == PLANS[2]
    assert samples[45].snapshot.past_subtasks == PLANS[:3]


def test_the_prompt_asks_for_it_in_words_that_are_one_token():
    plain, ahead = PromptConfig(), PromptConfig(plan_ahead=True)
    assert "; then " in fixed_phrases(ahead) and "; then " not in fixed_phrases(plain)
    added = set(system_prompt(ahead).splitlines()) - set(system_prompt(plain).splitlines())
    assert added == {'    Where the next ones are known, they follow, each after "; then ".'}
    lines = system_prompt(ahead).splitlines()
    assert lines[lines.index(*added) - 1].startswith("  - current_primitive")


def test_prompt_and_labels_have_to_agree():
    with pytest.raises(ValueError, match=r"prompt\.plan_ahead is False and dataset\.plan_ahead is \['touch \*'\]"):
        TrainConfig(dataset=DatasetConfig(plan_ahead=("touch *",)))
    TrainConfig(dataset=DatasetConfig(plan_ahead=("touch *",)), prompt=PromptConfig(plan_ahead=True))

"""Samples after something went wrong."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from memory_bank import MemoryConfig
from planner.dataset import DatasetConfig, SampleMaker
from planner.setbacks import setbacks
from predimem.core.episodes import Episode, SubtaskSpan
from tests.planner.builders import make_episode


def dropped() -> Episode:
    """Picks up, drops while it places, and picks up again."""
    labels = ("pick butter", 0), ("place butter", 20), ("pick butter", 30), ("place butter", 45)
    ends = [start for _, start in labels[1:]] + [60]
    spans = tuple(SubtaskSpan(start, end, label) for (label, start), end in zip(labels, ends, strict=True))
    events = [
        {"kind": "missed grasp", "start": 11, "end": 12},
        {"kind": "drop", "start": 20, "end": 28},
        {"kind": "pause", "start": 50, "end": 55},
    ]
    metadata = {"events": events, "span_stages": [0, 1, 0, 1]}
    return replace(make_episode(1000, "red", length=60), subtasks=spans, metadata=metadata)


def test_setbacks_are_what_went_wrong_and_what_came_undone() -> None:
    assert setbacks(dropped()) == (12, 28, 30)


def test_a_label_that_comes_twice_and_an_event_past_the_end_are_no_setbacks() -> None:
    twice = replace(
        dropped(), metadata={"span_stages": [0, 1, 2, 3], "events": [{"kind": "drop", "start": 58, "end": 60}]}
    )
    assert setbacks(twice) == ()
    assert setbacks(replace(twice, metadata={})) == ()


def test_samples_lie_after_setbacks() -> None:
    config = DatasetConfig(setback_probability=1.0, setback_steps=3)
    samples = list(SampleMaker([dropped()], MemoryConfig(recent_window=2), config).draw(200, random.Random(0)))
    assert {sample.snapshot.step for sample in samples} == {*range(12, 16), *range(28, 34)}


def test_an_episode_without_setbacks_is_drawn_as_ever() -> None:
    plain, memory = make_episode(1000, "red", length=60), MemoryConfig(recent_window=2)

    def steps(**options: float) -> list[int]:
        maker = SampleMaker([plain], memory, DatasetConfig(**options))  # type: ignore[arg-type]
        return [sample.snapshot.step for sample in maker.draw(50, random.Random(0))]

    assert steps(setback_probability=1.0) == steps()


@pytest.mark.parametrize("options", [{"setback_probability": 1.5}, {"setback_steps": -1}])
def test_values_that_are_out_of_range(options: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=next(iter(options))):
        DatasetConfig(**options)  # type: ignore[arg-type]

"""Figures on long episodes, of answers whose right count is known by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from planner.tracking import Track, TrackingConfig, score, score_by_group, track_planner
from predimem.core.types import MemorySnapshot, Plan
from tests.planner.test_counterfactual import MEMORY, searched

CONFIG = TrackingConfig(latency_steps=4, tolerance_steps=5, keyframe_tolerance_steps=2)


def test_right_answers_are_counted_inside_and_around_changes():
    episode = searched(1, "left")  # look 0-20, shut 20-40, open left 40-80; ends shown at 15, 36, 44
    answers = [(0, "look"), (10, "look"), (18, "shut"), (22, "look"), (30, "shut"), (42, "shut"), (60, "open left")]
    scores = score([Track(episode, answers, (16, 30))], CONFIG)
    assert scores.inside == 1.0 and scores.counts["inside"] == 4
    assert scores.boundary == 0.0 and scores.counts["boundary"] == 3
    assert scores.memory is None and scores.spans == 1.0
    assert (scores.premature, scores.late, scores.missed) == (0.0, 0.5, 0.0)
    assert scores.keyframe_precision == 0.5
    assert scores.keyframe_recall == pytest.approx(1 / 3, abs=1e-4) and scores.annotated_recall == 0.25


def test_switches_too_early_and_never():
    answers = [(0, "look"), (8, "shut"), (22, "shut"), (50, None), (60, "open right")]
    scores = score([Track(searched(1, "left"), answers, ())], CONFIG)
    assert (scores.premature, scores.late, scores.missed) == (0.5, 0.0, 0.5)
    assert scores.invalid == 0.2 and scores.keyframe_precision is None


def test_what_is_named_late_is_not_too_early_where_the_label_goes_back():
    """look 0-20, shut 20-40, look 40-80: the answer at 22 is still for the first subtask."""
    episode = searched(1, "left")
    spans = (*episode.subtasks[:2], replace(episode.subtasks[2], label="look"))
    answers = [(0, "look"), (22, "look"), (30, "shut"), (42, "look")]
    scores = score([Track(replace(episode, subtasks=spans), answers, ())], CONFIG)
    assert (scores.premature, scores.late, scores.missed) == (0.0, 0.5, 0.0)


def test_memory_dependent_subtasks_and_groups():
    known = {"category": "occlusion", "spans_memory": ["", "", "occlusion"]}
    episode = replace(searched(1, "left"), metadata=known)
    track = Track(episode, [(0, "look"), (30, "shut"), (50, "open left"), (60, "open right")], ())
    scores = score_by_group([track], CONFIG)
    assert list(scores) == ["all", "occlusion", "Search"]
    assert scores["occlusion"].memory == 0.5 and scores["occlusion"].spans == pytest.approx(2 / 3, abs=1e-4)


class Names:
    """Answers by the step alone and nominates the newest frame at step 16."""

    def __init__(self):
        self.past = []

    def plan(self, snapshot: MemorySnapshot) -> Plan:
        self.past.append(snapshot.past_subtasks)
        subtask = "look" if snapshot.step < 20 else "shut"
        return Plan(snapshot.episode_id, snapshot.step, subtask, (16,) if snapshot.step == 16 else ())


def test_the_planners_own_answers_make_its_memory():
    planner = Names()
    (track,) = track_planner(planner, [searched(1, "left")], MEMORY, CONFIG)
    assert [step for step, _ in track.answers] == list(range(0, 80, 4))
    assert track.keyframes == (16,)
    assert planner.past[0] == () and planner.past[5] == ("look",) and planner.past[7] == ("look", "shut")


def test_no_episodes_is_an_error():
    with pytest.raises(ValueError, match="no episodes"):
        track_planner(Names(), [], MEMORY)

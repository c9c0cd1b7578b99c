"""The planner's own figures on episodes made by hand, and how episodes are pooled."""

from __future__ import annotations

from dataclasses import replace

import pytest

from predimem.evaluation.analysis.planner_figures import planner_counts, pooled, rates
from predimem.evaluation.report.episode_log import Answer, EpisodeLog
from tests.evaluation.logs import FIRST, GOOD, HZ, PICK, SECOND, STAND, log


def test_a_perfect_episode() -> None:
    counts = planner_counts(log(GOOD, memory=(90, 205)), true_keyframes=(100, 200, 300))
    assert counts is not None
    figures = rates(counts)
    assert (figures["accuracy"], figures["accuracy_boundary"], figures["accuracy_inside"]) == (1.0, 1.0, 1.0)
    assert (figures["answers"], figures["answers_boundary"]) == (20, 9)  # at 4, 5 and 6 s, and so on
    assert (figures["switches"], figures["premature"], figures["late"], figures["missed"]) == (3, 0, 0, 0)
    assert (figures["delay_median_s"], figures["false_starts"], figures["invalid"]) == (0.0, 0, 0)
    assert (figures["keyframe_precision"], figures["keyframe_recall"]) == (1.0, pytest.approx(2 / 3))


def test_answers_are_judged_by_what_they_had_seen() -> None:
    episode = log(GOOD)
    episode.answers = [Answer(199, 204, FIRST), Answer(200, 205, FIRST)]
    episode.answers += [Answer(150, 155, None), Answer(160, 165, FIRST)]
    counts = planner_counts(episode)
    assert counts is not None
    assert (counts["boundary"], counts["boundary_right"]) == (2, 1)
    assert (counts["inside"], counts["inside_right"], counts["invalid"]) == (2, 1, 1)


def test_switches_and_their_delays() -> None:
    parts = (
        *((0, PICK, 3.0), (0, FIRST, 2.0)),  # 2 s too soon
        *((1, FIRST, 3.0), (1, SECOND, 1.0), (1, FIRST, 1.0)),  # a false start
        *((2, FIRST, 1.5), (2, SECOND, 3.5)),  # 1.5 s late
        (3, SECOND, 5.0),  # never
    )
    counts = planner_counts(log(parts))
    assert counts is not None
    assert counts["delays_s"] == [-2.0, 1.5] and (counts["missed"], counts["false_starts"]) == (1, 1)
    figures = rates(counts)
    assert (figures["premature"], figures["late"], figures["missed"]) == pytest.approx((1 / 3, 1 / 3, 1 / 3))
    assert figures["delay_median_s"] == -0.25


def test_a_label_that_was_refused_as_ambiguous_is_not_right() -> None:
    episode = log(((0, PICK, 5.0), (1, FIRST, 5.0)))
    episode.refused = {FIRST}
    counts = planner_counts(episode)
    assert counts is not None and counts["boundary_right"] + counts["inside_right"] == 5
    assert counts["delays_s"] == [] and counts["missed"] == 1


def test_a_switch_that_was_not_reached_is_none() -> None:
    counts = planner_counts(log(((0, PICK, 5.0), (1, FIRST, 9.0))))
    assert counts is not None and counts["switches"] == 1 and counts["delays_s"] == [0.0]


def test_picking_up_again_what_was_dropped_is_right() -> None:
    counts = planner_counts(log(((0, PICK, 5.0), (1, PICK, 5.0))))
    assert counts is not None and counts["boundary_right"] + counts["inside_right"] == 10


def test_who_has_no_planner_has_no_figures() -> None:
    scripted = log(GOOD)
    scripted.answers = []
    reactive = log(((0, "pour twice", 9.0),))
    assert planner_counts(scripted) is None and planner_counts(reactive) is None
    assert planner_counts(EpisodeLog(answers=[Answer(0, 0, "x")])) is None
    assert rates(pooled([None])) == {}


def test_episodes_are_pooled_not_averaged() -> None:
    short = planner_counts(log(((0, STAND, 1.0),), memory=(3,)), true_keyframes=())
    total = pooled([planner_counts(log(GOOD), true_keyframes=(100,)), None, short])
    figures = rates(total)
    assert figures["accuracy"] == pytest.approx(20 / 21) and figures["answers"] == 21
    assert (figures["keyframe_precision"], figures["keyframe_recall"]) == (0.0, 0.0)
    assert len(total["delays_s"]) == 3


def test_time_is_in_seconds_at_any_rate() -> None:
    episode = log(GOOD)
    fast = replace(episode, hz=2.0 * HZ)
    counts = planner_counts(fast)
    assert counts is not None and counts["boundary"] == 15  # 1 s is 40 steps, and an answer came each 20
    assert SECOND in fast.given_labels

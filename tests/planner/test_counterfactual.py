"""Counterfactual memory augmentation and branch points: another episode's memory before this one's window."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest

from memory_bank import MemoryConfig
from planner.branch_points import branch_points
from planner.counterfactual import with_memory_of
from planner.dataset import DatasetConfig, SampleMaker
from planner.nominations import keyframe_positions, keyframe_targets
from planner.replay import Replay, Sample
from predimem.core.episodes import Episode, SubtaskSpan
from predimem.core.frames import Frames

MEMORY = MemoryConfig(recent_window=2, recent_stride_steps=4, cluster_gap_steps=2, past_subtasks=True)


def searched(seed: int, found: str, pace: int = 1) -> Episode:
    """look 0-20, shut 20-40, then open what was found 40-80; every image is filled with its seed."""
    length = 80 * pace
    images = Frames(np.full((length, 4, 4, 3), seed, np.uint8))
    labels = [(0, 20, "look"), (20, 40, "shut"), (40, 80, f"open {found}")]
    return Episode(
        benchmark="arena",
        task="Search",
        seed=seed,
        instruction="Find it.",
        control_hz=20.0,
        success=True,
        images={"agentview_rgb": images, "eye_in_hand_rgb": images},
        state=np.zeros((length, 3), np.float32),
        actions=np.zeros((length, 3), np.float32),
        subtasks=tuple(SubtaskSpan(a * pace, b * pace, label) for a, b, label in labels),
        keyframes=tuple(step * pace for step in (4, 15, 36, 44)),
    )


def sample_at(episode: Episode, step: int) -> Sample:
    snapshot = Replay(episode, MEMORY, keyframe_targets(episode, "subtask_ends"))[step]
    return Sample(episode, snapshot, episode.subtask_at(step), (), (episode,) * len(snapshot.keyframes))


def test_the_last_keyframe_of_each_subtask_is_its_end():
    assert keyframe_targets(searched(1, "left"), "subtask_ends") == (15, 36, 44)
    assert keyframe_targets(searched(1, "left"), "annotated") == (4, 15, 36, 44)


@pytest.mark.parametrize(("step", "positions"), [(14, ()), (15, (2,)), (18, (2,)), (19, (1,)), (22, (1,)), (23, ())])
def test_an_event_is_nominated_by_the_first_frame_at_or_after_it(step, positions):
    snapshot = sample_at(searched(1, "left"), step).snapshot
    assert keyframe_positions(snapshot, (15,), stride_steps=4) == positions


def test_memory_and_label_come_from_the_other_episode():
    own, other = searched(1, "left"), searched(2, "right", pace=2)
    changed = with_memory_of(sample_at(own, 45), other, counterfactual_steps=6)
    assert changed.subtask == "open right" and changed.counterfactual
    assert [frame.step for frame in changed.snapshot.keyframes] == [30, 72]
    assert all((frame.images["agentview_rgb"] == 2).all() for frame in changed.snapshot.keyframes)
    assert [(f.step, int(f.images["agentview_rgb"].max())) for f in changed.snapshot.recent] == [(41, 1), (45, 1)]
    assert changed.snapshot.past_subtasks == ("look", "shut", "open right")


def test_a_window_that_gives_the_hidden_state_away_keeps_its_memory():
    own, other = searched(1, "left"), searched(2, "right")
    late = sample_at(own, 60)
    assert with_memory_of(late, other, counterfactual_steps=6) is late
    same_state = with_memory_of(late, searched(3, "left"), counterfactual_steps=6)
    assert same_state.counterfactual  # the same hidden state fits everywhere
    assert with_memory_of(sample_at(own, 30), other, counterfactual_steps=6).subtask == "shut"


def test_samples_near_a_change_and_on_the_grid():
    config = DatasetConfig(
        counterfactual_probability=0.8,
        nominate="subtask_ends",
        boundary_probability=1.0,
        boundary_steps=3,
        step_grid=2,
    )
    samples = list(SampleMaker([searched(1, "left"), searched(2, "right")], MEMORY, config).draw(80, random.Random(0)))
    steps = {sample.snapshot.step for sample in samples}
    assert steps <= {16, 18, 20, 22, 36, 38, 40, 42} and len(steps) == 8
    assert {s.subtask for s in samples if s.counterfactual and s.snapshot.step >= 40} == {"open left", "open right"}


def test_samples_at_branch_points():
    config = DatasetConfig(
        counterfactual_probability=0.8,
        nominate="subtask_ends",
        branch_point_probability=1.0,
        counterfactual_steps=7,
        step_grid=4,
    )
    one, other = searched(1, "left"), searched(2, "right", pace=2)
    assert branch_points([one, other]) == {id(one): (40,), id(other): (80,)}
    assert branch_points([one, searched(3, "left")])[id(one)] == ()
    samples = list(SampleMaker([one, other], MEMORY, config).draw(80, random.Random(0)))
    assert {(s.episode.seed, s.snapshot.step) for s in samples} == {(1, 40), (1, 44), (2, 80), (2, 84)}
    assert {s.subtask for s in samples if s.episode.seed == 1} == {"open left", "open right"}


def test_an_episode_that_goes_back_to_a_subtask_is_compared_with_no_other():
    """Its spans do not stand at the same places: what is second there need not be what is second here."""
    own, other = searched(1, "left"), searched(2, "right")
    back = replace(other, metadata={"span_stages": [0, 1, 0]})
    assert back.goes_back and not replace(other, metadata={"span_stages": [0, 1, 2]}).goes_back
    assert branch_points([own, back]) == {id(own): (), id(back): ()}
    early = sample_at(own, 45)
    assert with_memory_of(early, back, counterfactual_steps=6) is early
    assert with_memory_of(early, other, counterfactual_steps=6).counterfactual


def test_no_memory_comes_from_an_episode_with_another_instruction_or_of_another_task():
    """Its answer would follow from words that the planner is not shown."""
    config = DatasetConfig(counterfactual_probability=1.0)
    left, right = searched(1, "left"), searched(2, "right")
    for stranger in (replace(right, instruction="Find the other one."), replace(right, task="Another")):
        samples = list(SampleMaker([left, stranger], MEMORY, config).draw(60, random.Random(0)))
        assert not any(sample.counterfactual for sample in samples)
        assert all(sample.subtask == sample.episode.subtask_at(sample.snapshot.step) for sample in samples)
    samples = list(SampleMaker([left, right], MEMORY, config).draw(60, random.Random(0)))
    assert any(sample.counterfactual for sample in samples)


def test_keyframes_can_be_forgotten_and_moved():
    episodes = [searched(1, "left")]
    plain = DatasetConfig()
    forgetful = SampleMaker(episodes, MEMORY, replace(plain, missing_probability=0.999))
    assert sum(len(s.snapshot.keyframes) for s in forgetful.draw(30, random.Random(0))) <= 2
    moved = SampleMaker(episodes, MEMORY, replace(plain, jitter_steps=2)).draw(60, random.Random(0))
    seen = {frame.step for sample in moved for frame in sample.snapshot.keyframes}
    assert {14, 15, 16} <= seen and seen - {4, 15, 36, 44}


def test_a_planner_with_a_text_memory_is_late_or_early():
    config = DatasetConfig(lag_steps=8)
    samples = list(SampleMaker([searched(1, "left")], MEMORY, config).draw(200, random.Random(0)))
    last = [(s.snapshot.past_subtasks[-1], s.subtask) for s in samples if s.snapshot.past_subtasks]
    assert ("look", "shut") in last and ("shut", "look") in last and ("shut", "shut") in last
    never_early = SampleMaker([searched(1, "left")], MEMORY, replace(config, early_steps=0))
    last = [(s.snapshot.past_subtasks[-1:], s.subtask) for s in never_early.draw(200, random.Random(0))]
    assert (("look",), "shut") in last and (("shut",), "look") not in last
    with pytest.raises(ValueError, match="early_steps must be at least 0, got -1"):
        replace(config, early_steps=-1)


def test_keyframes_lie_on_the_grid():
    episodes = [searched(1, "left"), searched(2, "right", pace=2)]
    config = DatasetConfig(counterfactual_probability=0.5, nominate="subtask_ends", step_grid=10, jitter_steps=4)
    samples = list(SampleMaker(episodes, MEMORY, config).draw(80, random.Random(0)))
    steps = [frame.step for sample in samples for frame in sample.snapshot.keyframes]
    assert steps and all(step % 10 == 0 for step in steps)
    assert any(sample.counterfactual for sample in samples)


def test_changes_of_subtask_are_targets():
    assert keyframe_targets(searched(1, "left"), "changes") == (20, 40)
    same = replace(searched(1, "left"), subtasks=(SubtaskSpan(0, 30, "look"), SubtaskSpan(30, 80, "look")))
    assert keyframe_targets(same, "changes") == ()


def test_what_a_planner_nominated_itself_is_remembered():
    episode = replace(searched(1, "left"), metadata={"nominated_steps": [7, 50]})
    config = DatasetConfig(own_memory_probability=0.5, nominate="changes", step_grid=2)
    samples = SampleMaker([episode], MEMORY, config).draw(200, random.Random(0))
    late = [tuple(f.step for f in s.snapshot.keyframes) for s in samples if s.snapshot.step >= 60]
    assert set(late) == {(8, 50), (20, 40)}

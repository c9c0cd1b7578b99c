"""Closed-loop replay, with planners whose answers can be computed by hand."""

from __future__ import annotations

import pytest

from planner.evaluate import ReplayConfig, replay_planner
from predimem.core.types import MemorySnapshot, Plan
from tests.planner.builders import MEMORY, make_episode


class PerfectPlanner:
    """Knows the episode; remembers the goal only if it kept a keyframe of the cue."""

    def __init__(self, episode, keep: bool = True):
        self.episode, self.keep = episode, keep
        self.seen: list[tuple[int, tuple[int, ...]]] = []

    def plan(self, snapshot: MemorySnapshot) -> Plan:
        self.seen.append((snapshot.step, tuple(f.step for f in snapshot.keyframes)))
        subtask = self.episode.subtask_at(snapshot.step)
        if subtask == self.episode.goal and not snapshot.keyframes:
            return Plan(snapshot.episode_id, snapshot.step, None, (), "?", "not JSON")
        steps = {f.step for f in snapshot.recent} & set(self.episode.keyframes) if self.keep else ()
        return Plan(snapshot.episode_id, snapshot.step, subtask, tuple(steps))


def test_a_perfect_planner_scores_one():
    episode = make_episode(1, "red")  # cue 0-1, squares from 5, keyframes 0 and 8
    planner = PerfectPlanner(episode)
    scores = replay_planner(planner, [episode], MEMORY, ReplayConfig(latency_steps=2))
    assert [step for step, _ in planner.seen] == [0, 2, 4, 6, 8]
    assert planner.seen[1] == (2, (0,))  # the plan of step 0 arrived at step 2
    assert scores.accuracy == {"watch": 1.0, "wait": 1.0, "touch": 1.0}
    assert scores.counts == {"watch": 1, "wait": 2, "touch": 2}
    assert (scores.first_goal, scores.goal_episodes) == (1.0, 1.0)
    assert (scores.cue_kept, scores.invalid) == (1.0, 0)
    assert scores.keyframe_precision == 1.0
    assert scores.keyframe_recall == 0.5  # nominated at step 8, arrives after the end


def test_a_planner_without_memory_fails_where_memory_is_needed():
    episode = make_episode(1, "red")
    scores = replay_planner(PerfectPlanner(episode, keep=False), [episode], MEMORY, ReplayConfig(latency_steps=1))
    assert scores.accuracy == {"watch": 1.0, "wait": 1.0, "touch": 0.0}
    assert scores.answers == 10 and scores.invalid == 5
    assert (scores.goal_episodes, scores.cue_kept, scores.keyframe_recall) == (0.0, 0.0, 0.0)
    assert scores.first_goal == 0.0 and scores.keyframe_precision is None  # it stores none
    assert scores.mistakes[0][2] == "touch the red cube"


def test_no_episodes_is_an_error():
    with pytest.raises(ValueError, match="no episodes"):
        replay_planner(PerfectPlanner(None), [], MEMORY)

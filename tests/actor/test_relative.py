"""Actions that are absolute joint positions are learned relative to where the joints are, and come back absolute."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from actor.dataset import FrameSet, SamplingConfig
from actor.transforms import Relative
from actor.weights import ActorConfig
from predimem.core.episodes import VIDEO_STEPS, SubtaskSpan
from tests.actor.conftest import CAMERAS, make_episode

ENTRIES = (2, None, 0)


def test_there_and_back() -> None:
    state = np.array([[0.5, 9.0, -1.0], [0.0, 9.0, 2.0]], np.float32)
    chunks = np.arange(12, dtype=np.float32).reshape(2, 2, 3)
    relative = Relative(ENTRIES)(chunks, state)
    np.testing.assert_allclose(relative[0], [[1.0, 1.0, 1.5], [4.0, 4.0, 4.5]])
    np.testing.assert_allclose(relative[1], [[4.0, 7.0, 8.0], [7.0, 10.0, 11.0]])
    np.testing.assert_allclose(Relative(ENTRIES).inverse(relative, state), chunks)


def test_labels_are_relative_to_the_state_of_their_step_and_a_video_has_none() -> None:
    episode = make_episode(1000)
    steps = len(episode)
    state = np.tile(np.arange(steps, dtype=np.float32)[:, None], (1, 7))
    actions = state + np.float32(0.25)
    spans = (SubtaskSpan(0, 2, "watch the video"), SubtaskSpan(2, steps, "move"))
    told = {VIDEO_STEPS: 2}
    episode = dataclasses.replace(
        episode, state=state, actions=actions, subtasks=spans, alternatives=None, metadata=told, goal=""
    )
    frames = FrameSet([episode], CAMERAS, 2, 32, relative_to=(0, 1, 2, 3, 4, 5, None))
    assert frames.idle == [(0, step) for step in range(2, steps)] and not frames.active
    assert "watch the video" not in frames.prompts
    batch = frames.batch(np.random.default_rng(0), SamplingConfig(instruction_share=0.0), augment=False)
    np.testing.assert_allclose(batch.chunks[:, 0, :6], 0.25)
    np.testing.assert_allclose(batch.chunks[:, 0, 6], batch.state[0, 0] * 0 + batch.state.repeat(6, 0)[:, 6] + 0.25)


def test_entries_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValueError, match="relative_to should have an entry for each of the 7 actions"):
        ActorConfig(relative_to=(0, 1))
    with pytest.raises(ValueError, match="relative_to: the state has the entries 0 to 6"):
        ActorConfig(relative_to=(0, 1, 2, 3, 4, 5, 7))

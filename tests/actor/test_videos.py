"""A conditioning video, in which somebody else acts, is no label for the actor."""

from __future__ import annotations

import dataclasses

from actor.dataset import FrameSet
from predimem.core.episodes import VIDEO_STEPS, SubtaskSpan
from tests.actor.conftest import CAMERAS, make_episode


def test_a_video_has_no_labels() -> None:
    episode = make_episode(1000)
    steps = len(episode)
    spans = (SubtaskSpan(0, 2, "watch the video"), SubtaskSpan(2, steps, "move"))
    episode = dataclasses.replace(episode, subtasks=spans, alternatives=None, metadata={VIDEO_STEPS: 2}, goal="")
    frames = FrameSet([episode], CAMERAS, 2, 32)
    assert frames.idle == [(0, step) for step in range(2, steps)] and not frames.active
    assert "watch the video" not in frames.prompts

"""Writes down a DAgger episode: what was sensed and done, and the labels."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from datagen.demos.recorder import spans_of
from datagen.export.arena_state import OPENING, POSITION
from datagen.keyframes import KeyframeConfig, extract_keyframes
from predimem.core.episode_writer import EpisodeWriter
from predimem.core.episodes import SubtaskSpan
from predimem.core.types import Observation
from predimem.envs.arena.scene.environment import CAMERAS, CONTROL_HZ

END_STEPS = 12  # a keyframe that shows how a subtask ended is at most so old when the label becomes the next one


class DaggerRecorder:
    """One control step after the other goes to the file; `finish` gives the episode its annotations and its name."""

    def __init__(self, env: Any, path: Path, seed: int):
        """env: an `ArenaEnv` of one world, with images as they shall be stored."""
        self._env, px = env, env.image_px
        self._writer = EpisodeWriter(
            path, "arena", env.task.name, seed, float(CONTROL_HZ), dict.fromkeys(CAMERAS, (px, px))
        )
        self._states: list[np.ndarray] = []
        self._labels: list[int] = []

    def __len__(self) -> int:
        return len(self._states)

    def add(self, observation: Observation, fresh: bool, action: np.ndarray, label: int) -> None:
        """fresh: whether the images are of this very step. label: the index of the subtask that
        should be named."""
        self._writer.add(observation.images if fresh else None, observation.state, action)
        self._states.append(observation.state)
        self._labels.append(label)

    def finish(self, success: bool, keyframes: KeyframeConfig, metadata: dict[str, Any]) -> None:
        variant, state = self._env.variant(), np.stack(self._states)
        spans = spans_of(self._labels)
        onsets = extract_keyframes(state[:, POSITION], state[:, OPENING], CONTROL_HZ, keyframes)
        self._writer.finish(
            instruction=variant.instruction,
            success=success,
            subtasks=[SubtaskSpan(a, b, variant.subtasks[i].label) for a, b, i in spans],
            keyframes=with_ends(onsets, [end for _, end, _ in spans]),
            metadata=metadata
            | {
                "task_id": self._env.task.task_id,
                "category": self._env.task.category,
                "spans_memory": [variant.subtasks[i].memory or "" for _, _, i in spans],
                "span_stages": [i for _, _, i in spans],
            },
        )

    def close(self) -> None:
        """Delete what was not finished."""
        self._writer.abandon()


def with_ends(keyframes: Sequence[int], ends: Sequence[int]) -> tuple[int, ...]:
    """Keyframes, and the last step of each span that has none in its last `END_STEPS`: an arm that was disturbed
    does not come to rest where a subtask ends."""
    missing = [end - 1 for end in ends if not any(end - END_STEPS <= step < end for step in keyframes)]
    return tuple(sorted({*keyframes, *missing}))

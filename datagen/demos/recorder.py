"""Writes down what the robot senses and does while an episode is played, with its annotations."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from datagen.execution.timing import Stopwatch
from datagen.export.arena_state import OPENING, POSITION
from datagen.keyframes import KeyframeConfig, extract_keyframes
from predimem.core.episode_writer import EpisodeWriter
from predimem.core.episodes import SubtaskSpan
from predimem.envs.arena.scene.environment import CAMERAS, CONTROL_HZ


class Recorder:
    """One control step after the other goes to the file; `finish` adds what is known only at the end."""

    def __init__(self, env: Any, path: Path, seed: int, image_every: int, watch: Stopwatch):
        """env: an `ArenaEnv` of one world, in control mode and with images as they shall be stored."""
        self._env, self._every, self._watch = env, image_every, watch
        self._task = env.task
        px = env.image_px
        self._writer = EpisodeWriter(
            path, "arena", self._task.name, seed, float(CONTROL_HZ), dict.fromkeys(CAMERAS, (px, px))
        )
        self._states: list[np.ndarray] = []
        self._subtasks: list[int] = []

    def __len__(self) -> int:
        return len(self._states)

    def add(self, action: np.ndarray, subtask: int) -> None:
        """Before the environment steps: what is sensed now, the action, and the index of the subtask."""
        images = None
        if len(self._states) % self._every == 0:
            with self._watch.stage("images"):
                seen = self._env.observe("rgb")
                images = {name: data["rgb"][0].cpu().numpy() for name, data in seen.items()}
        state = self._env.proprioception()
        with self._watch.stage("writing"):
            self._writer.add(images, state, action)
        self._states.append(state)
        self._subtasks.append(subtask)

    def finish(self, keyframes: KeyframeConfig, metadata: dict[str, Any]) -> None:
        """Give the episode its annotations and its final name."""
        variant, state = self._env.variant(), np.stack(self._states)
        spans = spans_of(self._subtasks)
        with self._watch.stage("writing"):
            self._writer.finish(
                instruction=variant.instruction,
                success=True,
                subtasks=[SubtaskSpan(start, end, variant.subtasks[i].label) for start, end, i in spans],
                keyframes=extract_keyframes(state[:, POSITION], state[:, OPENING], CONTROL_HZ, keyframes),
                metadata=metadata
                | {
                    "task_id": self._task.task_id,
                    "category": self._task.category,
                    "spans_memory": [variant.subtasks[i].memory or "" for _, _, i in spans],
                },
            )

    def close(self) -> None:
        """Delete what was not finished."""
        self._writer.abandon()


def spans_of(values: list[int]) -> list[tuple[int, int, int]]:
    """(start, end, value) of the runs of equal values."""
    starts = [t for t in range(len(values)) if t == 0 or values[t] != values[t - 1]]
    return [(a, b, values[a]) for a, b in zip(starts, [*starts[1:], len(values)], strict=True)]

"""The rows of an episode of RoboMME as they go to its file, whoever made them, and its keyframes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from predimem.core.episode_writer import EpisodeWriter
from predimem.core.types import Observation
from predimem.envs.robomme.events import apart, grips
from predimem.envs.robomme.robot import OPENING


class EpisodeRows:
    """Hands an episode to its file. Images that are the very ones of the row before are not stored again."""

    def __init__(self, writer: EpisodeWriter):
        self._writer = writer
        self._images: Mapping[str, np.ndarray] | None = None
        self._openings: list[float] = []
        self.labels: list[str] = []

    def __len__(self) -> int:
        return len(self.labels)

    def add(self, observation: Observation, action: np.ndarray, label: str) -> None:
        fresh = observation.images is not self._images
        self._writer.add(observation.images if fresh else None, observation.state, action)
        self._images = observation.images
        self._openings.append(float(observation.state[OPENING].sum()))
        self.labels.append(label)

    def keyframes(self, events: Iterable[int], video_steps: int) -> tuple[int, ...]:
        """Where the subtask changes, and at `events`. A video has no subtasks: there, where the gripper begins to close
        or to open."""
        labels = self.labels
        found = {step for step in range(1, len(labels)) if labels[step] != labels[step - 1]} | set(events)
        if video_steps:
            found.update(grips(self._openings[:video_steps]))
        return apart(found, len(labels))

"""An episode made of pieces of another one, in an order of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from predimem.core.episodes import Episode, SubtaskSpan
from predimem.core.frames import Frames


@dataclass
class Cut:
    """The episode that is being made: the source's step that each of its steps shows, and what it is."""

    steps: list[int] = field(default_factory=list)
    subtasks: list[SubtaskSpan] = field(default_factory=list)
    keyframes: list[int] = field(default_factory=list)

    def add(self, label: str, steps: Sequence[int], keyframe: bool = False) -> None:
        """A piece of a subtask; keyframe: whether its first step is one."""
        start = len(self.steps)
        if keyframe:
            self.keyframes.append(start)
        self.steps += steps
        if self.subtasks and self.subtasks[-1].label == label:
            start = self.subtasks.pop().start
        self.subtasks.append(SubtaskSpan(start, len(self.steps), label))

    def images(self, source: Episode) -> dict[str, np.ndarray]:
        """By camera the images, uint8 [N, H, W, 3], of the N steps that show another one than the step before."""
        taken = np.array(self.steps)[self._fresh()]
        return {camera: np.stack([frames[step] for step in taken]) for camera, frames in source.images.items()}

    def episode(self, source: Episode, images: Mapping[str, np.ndarray], task: str, seed: int, goal: str) -> Episode:
        """Of these images, with the source's state, without actions and alternatives."""
        rows = np.cumsum(self._fresh()) - 1
        return replace(
            source,
            task=task,
            seed=seed,
            images={camera: Frames(stack, rows) for camera, stack in images.items()},
            state=source.state[self.steps],
            actions=np.zeros((len(self.steps), source.actions.shape[1]), np.float32),
            subtasks=tuple(self.subtasks),
            keyframes=tuple(self.keyframes),
            goal=goal,
            alternatives=None,
            metadata={"edited_from": [source.task, source.seed]},
        )

    def _fresh(self) -> np.ndarray:
        return np.diff(self.steps, prepend=-1) != 0

"""Frames that are spread evenly over the whole episode so far: a memory that nominates nothing and forgets nothing.

It is what RoboMME calls FrameSamp, and the plainest answer to "which older images should the planner see?". A config
names it as any memory of one's own:

    memory: {implementation: "memory_bank.uniform:UniformFrames", recent_window: 3, options: {frames: 8}}
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from memory_bank.config import MemoryConfig
from memory_bank.window import RecentWindow
from predimem.core.types import Frame, MemorySnapshot, Observation


class UniformFrames:
    """Implements `predimem.core.interfaces.Memory`. It shows `frames` older frames, or fewer early in an episode.

    It holds less than twice as many: frames of every `stride`-th control step since the first one. When there would be
    more, every other one goes and the stride doubles. What is shown is spread evenly over those that are held.
    """

    def __init__(self, config: MemoryConfig, frames: int = 8):
        """Raises ValueError for less than 2 frames. `keyframe_capacity`, where it is smaller, is shown instead."""
        if frames < 2:
            raise ValueError(f"memory: options: frames has to be at least 2, got {frames}")
        capacity = config.keyframe_capacity
        self._config, self._held_at_most = config, 2 * frames
        self._frames = frames if capacity is None else min(frames, capacity)
        self.reset("", "")

    def reset(self, episode_id: str, instruction: str) -> None:
        self._episode_id, self._instruction = episode_id, instruction
        self._window = RecentWindow(self._config)
        self._held: list[Frame] = []
        self._stride_steps = 1

    def observe(self, observation: Observation) -> None:
        """Raises ValueError unless steps increase."""
        frame = self._window.add(observation)
        if self._held and frame.step < self._held[-1].step + self._stride_steps:
            return
        self._held.append(frame)
        if len(self._held) >= self._held_at_most:
            self._held, self._stride_steps = self._held[::2], 2 * self._stride_steps

    def nominate(self, steps: Iterable[int]) -> None:
        """Ignored: which frames are kept follows from their steps alone."""

    def snapshot(self) -> MemorySnapshot:
        """Raises ValueError before the first observation."""
        recent = self._window.frames()
        older: tuple[Frame, ...] = self._window.older(self._held) if self._config.keyframes else ()
        if len(older) > self._frames:
            places = np.linspace(0, len(older) - 1, self._frames).round().astype(int)
            older = tuple(older[int(place)] for place in places)
        return MemorySnapshot(self._episode_id, recent[-1].step, self._instruction, recent, older)

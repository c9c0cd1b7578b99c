"""A memory of one's own: a frame every few seconds, and only the last ones are kept.

    predimem verify memory examples/every_few_seconds.py:EveryFewSeconds

In an agent config, a recipe or a serve config: `memory: {implementation: examples/every_few_seconds.py:EveryFewSeconds,
keyframe_capacity: 8, options: {seconds: 5}}`. docs/guides/own-memory.md explains the parts.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from memory_bank import MemoryConfig, RecentWindow
from predimem.core.types import Frame, MemorySnapshot, Observation


class EveryFewSeconds:
    """Keeps the first frame and then one every `seconds`, at most `keyframe_capacity` (8 where the config sets none).

    What the planner nominates is ignored: this memory shows what nominations are worth.
    """

    def __init__(self, config: MemoryConfig, seconds: float = 5.0):
        if seconds <= 0:
            raise ValueError(f"seconds: expected more than 0, got {seconds}")
        self._config, self._seconds = config, seconds

    def reset(self, episode_id: str, instruction: str) -> None:
        self._episode_id, self._instruction = episode_id, instruction
        self._window = RecentWindow(self._config)
        self._kept: deque[Frame] = deque(maxlen=self._config.keyframe_capacity or 8)

    def observe(self, observation: Observation) -> None:
        frame = self._window.add(observation)
        if not self._config.keyframes:
            return
        if not self._kept or frame.time_s >= self._kept[-1].time_s + self._seconds:
            self._kept.append(frame)

    def nominate(self, steps: Iterable[int]) -> None:
        """The clock decides."""

    def snapshot(self) -> MemorySnapshot:
        recent = self._window.frames()
        keyframes = self._window.older(self._kept)
        return MemorySnapshot(self._episode_id, recent[-1].step, self._instruction, recent, keyframes)

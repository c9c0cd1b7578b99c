"""The memory bank: M_t = M_t^key ∪ M_t^rec (002 §4), one per episode, single-threaded.

Only the control thread changes it. Workers get immutable snapshots and give back plans, whose
nominations are absolute steps: the window has moved on by the time a plan arrives, so the bank
keeps the last `history_steps` frames for write-back. An image is copied once, when it is observed;
recent window, history, keyframes and snapshots all share that one read-only array.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from memory_bank.selection import NominationClusters
from predimem.types import Frame, MemorySnapshot, Observation


@dataclass(frozen=True)
class MemoryConfig:
    """recent_window: timesteps in the recent buffer (002: W = 5). keyframe_capacity: None is uncapped;
    when full, the oldest keyframe goes. cluster_gap_steps: nominations that are no further apart are
    one event (002's reference runtime: 6). history_steps: how long a frame can still be nominated.
    keyframes: False is the ablation without a keyframe bank."""

    recent_window: int = 5
    keyframe_capacity: int | None = None
    cluster_gap_steps: int = 6
    history_steps: int = 256
    keyframes: bool = True

    def __post_init__(self) -> None:
        if self.recent_window < 1:
            raise ValueError(f"recent_window must be at least 1, got {self.recent_window}")
        if self.keyframe_capacity is not None and self.keyframe_capacity < 1:
            raise ValueError(
                f"keyframe_capacity must be at least 1 or null (uncapped), got {self.keyframe_capacity}; "
                "for no keyframes at all set keyframes: false"
            )
        if self.cluster_gap_steps < 0:
            raise ValueError(f"cluster_gap_steps must not be negative, got {self.cluster_gap_steps}")
        if self.history_steps < self.recent_window:
            raise ValueError(
                f"history_steps ({self.history_steps}) must cover recent_window ({self.recent_window})"
            )


class MemoryBank:
    """Call `reset`, then for every control step `observe`, `nominate` what arrived, `snapshot`."""

    def __init__(self, config: MemoryConfig | None = None):
        self.config = config or MemoryConfig()
        self.reset("", "")

    def reset(self, episode_id: str, instruction: str) -> None:
        """Forget everything and begin an episode."""
        self._episode_id = episode_id
        self._instruction = instruction
        self._recent: deque[Frame] = deque(maxlen=self.config.recent_window)
        self._history: dict[int, Frame] = {}  # insertion order is step order
        self._clusters = NominationClusters(self.config.cluster_gap_steps, self.config.history_steps)
        self._nominated: dict[int, Frame] = {}
        self._settled: deque[Frame] = deque(maxlen=self.config.keyframe_capacity)
        self._keyframes: tuple[Frame, ...] = ()
        self.late_nominations = 0

    def observe(self, observation: Observation) -> None:
        """Take in the frame of one control step. Raises ValueError unless steps increase."""
        if self._recent and observation.step <= self._recent[-1].step:
            raise ValueError(
                f"observations must come in order: got step {observation.step} after "
                f"{self._recent[-1].step}; call reset() between episodes"
            )
        images = {name: _read_only(image) for name, image in observation.images.items()}
        frame = Frame(observation.step, observation.time_s, MappingProxyType(images))
        self._recent.append(frame)
        self._history[frame.step] = frame
        if len(self._history) > self.config.history_steps:
            del self._history[next(iter(self._history))]

    def nominate(self, steps: Iterable[int]) -> None:
        """Count the planner's nominations (absolute steps) and renew the keyframes.

        A step that has left the history is dropped and counted in `late_nominations`. Raises
        ValueError for a step that has not been observed yet.
        """
        if not self.config.keyframes:
            return
        changed = False
        for step in steps:
            if not self._recent or step > self._recent[-1].step:
                raise ValueError(f"step {step} was nominated as a keyframe before it was observed")
            if step not in self._history:
                self.late_nominations += 1
                continue
            self._settle(now=self._recent[-1].step)
            self._nominated[step] = self._history[step]
            self._clusters.add(step)
            changed = True
        if changed:
            medians = (self._nominated[step] for step in self._clusters.medians())
            keyframes = (*self._settled, *medians)
            capacity = self.config.keyframe_capacity
            self._keyframes = keyframes if capacity is None else keyframes[-capacity:]

    def snapshot(self) -> MemorySnapshot:
        """What the planner may see now. Raises ValueError before the first observation."""
        if not self._recent:
            raise ValueError("nothing observed yet: call observe() before snapshot()")
        recent = tuple(self._recent)
        keyframes = self._keyframes
        while keyframes and keyframes[-1].step >= recent[0].step:
            keyframes = keyframes[:-1]
        return MemorySnapshot(self._episode_id, recent[-1].step, self._instruction, recent, keyframes)

    @property
    def keyframe_steps(self) -> tuple[int, ...]:
        """Steps of the keyframe buffer, oldest first."""
        return tuple(frame.step for frame in self._keyframes)

    def _settle(self, now: int) -> None:
        for cluster in self._clusters.seal(now):
            self._settled.append(self._nominated[cluster.median])
            for step in set(cluster.steps):
                del self._nominated[step]


def _read_only(image: np.ndarray) -> np.ndarray:
    """The image itself if nobody can change it, else one private copy."""
    if image.flags.writeable or image.base is not None:
        image = image.copy()
        image.flags.writeable = False
    return image

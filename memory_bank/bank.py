"""The memory bank: M_t = M_t^key ∪ M_t^rec (RoboMemArena, arXiv:2605.10921, §4), one per episode, single-threaded.

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
from predimem.core.types import Frame, MemorySnapshot, Observation


@dataclass(frozen=True)
class MemoryConfig:
    """Which memory the planner has. The memory interfaces that are compared differ in this config alone.

    recent_window: how many timesteps the recent window has (RoboMemArena: W = 5).
    keyframe_capacity: how many keyframes are kept; when the bank is full, the oldest one goes. None sets no limit.
    cluster_gap_steps: nominations that are no further apart are one event (RoboMemArena's reference runtime: 6).
    history_steps: for so many control steps a frame can still be nominated.
    keyframes: False is the ablation without a keyframe bank.
    recent_stride_steps: the control steps from one timestep of the window to the next. At 20 Hz five consecutive frames
        span a quarter of a second, in which nothing ends. A long window of sparse frames without keyframes is the
        native-video interface.
    past_subtasks: True is the text memory, which lists the planner's own answers so far.
    """

    recent_window: int = 5
    keyframe_capacity: int | None = None
    cluster_gap_steps: int = 6
    history_steps: int = 256
    keyframes: bool = True
    recent_stride_steps: int = 1
    past_subtasks: bool = False

    def __post_init__(self) -> None:
        if self.recent_window < 1:
            raise ValueError(f"recent_window must be at least 1, got {self.recent_window}")
        if self.recent_stride_steps < 1:
            raise ValueError(f"recent_stride_steps must be at least 1, got {self.recent_stride_steps}")
        if self.keyframe_capacity is not None and self.keyframe_capacity < 1:
            raise ValueError(
                f"keyframe_capacity must be at least 1 or null (uncapped), got {self.keyframe_capacity}; "
                "for no keyframes at all set keyframes: false"
            )
        if self.cluster_gap_steps < 0:
            raise ValueError(f"cluster_gap_steps must not be negative, got {self.cluster_gap_steps}")
        if self.history_steps < self.window_steps:
            raise ValueError(
                f"history_steps ({self.history_steps}) must cover the {self.window_steps} control steps of the "
                f"recent window (recent_window {self.recent_window}, recent_stride_steps {self.recent_stride_steps})"
            )

    @property
    def window_steps(self) -> int:
        """Control steps that a full recent window spans, both ends included."""
        return (self.recent_window - 1) * self.recent_stride_steps + 1


class MemoryBank:
    """Call `reset`, then for every control step `observe`, `nominate` what arrived, `snapshot`."""

    def __init__(self, config: MemoryConfig | None = None):
        self.config = config or MemoryConfig()
        self.reset("", "")

    def reset(self, episode_id: str, instruction: str) -> None:
        """Forget everything and begin an episode."""
        self._episode_id = episode_id
        self._instruction = instruction
        self._recent: deque[Frame] = deque(maxlen=self.config.window_steps)
        self._history: dict[int, Frame] = {}  # insertion order is step order
        self._clusters = NominationClusters(self.config.cluster_gap_steps, self.config.history_steps)
        self._nominated: dict[int, Frame] = {}
        self._settled: deque[Frame] = deque(maxlen=self.config.keyframe_capacity)
        self._keyframes: tuple[Frame, ...] = ()
        self._subtasks: list[str] = []

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

        A step that has left the history is dropped. Raises ValueError for a step that has not been observed yet.
        """
        if not self.config.keyframes:
            return
        changed = False
        for step in steps:
            if not self._recent or step > self._recent[-1].step:
                raise ValueError(f"step {step} was nominated as a keyframe before it was observed")
            if step not in self._history:
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

    def note_subtask(self, subtask: str) -> None:
        """Remember an answer of the planner; one that is repeated counts once."""
        if self.config.past_subtasks and (not self._subtasks or self._subtasks[-1] != subtask):
            self._subtasks.append(subtask)

    def snapshot(self) -> MemorySnapshot:
        """What the planner may see now. Raises ValueError before the first observation."""
        if not self._recent:
            raise ValueError("nothing observed yet: call observe() before snapshot()")
        recent = tuple(self._recent)[:: -self.config.recent_stride_steps][::-1]
        # Keyframes are older than the window. A window that is not full yet reaches back to the start.
        keyframes = self._keyframes if len(recent) == self.config.recent_window else ()
        while keyframes and keyframes[-1].step >= recent[0].step:
            keyframes = keyframes[:-1]
        past = tuple(self._subtasks)
        return MemorySnapshot(self._episode_id, recent[-1].step, self._instruction, recent, keyframes, past)

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

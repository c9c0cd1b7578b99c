"""What the planner would have seen at any step of an episode. The same memory bank as at run time is replayed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from memory_bank import MemoryBank, MemoryConfig
from predimem.core.episodes import Episode
from predimem.core.types import Frame, MemorySnapshot, Observation


@dataclass(frozen=True, eq=False)
class Sample:
    """What the planner sees at one step, and what it should answer.

    episode: the episode that the recent window is from.
    snapshot: what the planner sees.
    subtask: the label, the subtask that the planner should name.
    positions: the keyframes that it should nominate, as 1-indexed positions in `snapshot.recent`.
    sources: for each keyframe of the snapshot, the episode that its frame is from.
    """

    episode: Episode
    snapshot: MemorySnapshot
    subtask: str
    positions: tuple[int, ...]
    sources: tuple[Episode, ...]

    @property
    def counterfactual(self) -> bool:
        """Whether a part of the memory is from another episode."""
        return any(source is not self.episode for source in self.sources)


class Replay:
    """`replay[t]` is the snapshot at step t of an episode whose planner nominates these steps as they happen.

    The bank sees no images. Those of a snapshot are read when it is asked for, so that a few snapshots of a long
    episode cost little.

    nominated: the steps that the planner nominates.
    lag_steps: for a text memory, how many control steps after the recording the planner names its subtasks; negative
        if it names them too early.
    """

    def __init__(self, episode: Episode, memory: MemoryConfig, nominated: Sequence[int], lag_steps: int = 1):
        self._episode = episode
        self._snapshots: list[MemorySnapshot] = []
        bank = MemoryBank(memory)
        bank.reset(f"{episode.task}-{episode.seed}", episode.instruction)
        for step in range(len(episode)):
            bank.observe(Observation(step, {}, episode.state[step], step / episode.control_hz))
            if step in nominated:
                bank.nominate([step])
            if memory.past_subtasks and step >= lag_steps:
                bank.note_subtask(episode.subtask_at(min(step - lag_steps, len(episode) - 1)))
            self._snapshots.append(bank.snapshot())

    def __len__(self) -> int:
        return len(self._snapshots)

    def __getitem__(self, step: int) -> MemorySnapshot:
        snapshot = self._snapshots[step]
        recent = tuple(frame_at(self._episode, frame.step) for frame in snapshot.recent)
        keyframes = tuple(frame_at(self._episode, frame.step) for frame in snapshot.keyframes)
        return replace(snapshot, recent=recent, keyframes=keyframes)


class StepImages(Mapping[str, np.ndarray]):
    """The images of one step of an episode, by camera. Each is read when it is asked for."""

    def __init__(self, episode: Episode, step: int):
        self._episode, self._step = episode, step

    def __getitem__(self, camera: str) -> np.ndarray:
        return self._episode.images[camera][self._step]

    def __contains__(self, camera: object) -> bool:
        return camera in self._episode.images  # Mapping's own would read the image

    def __iter__(self) -> Iterator[str]:
        return iter(self._episode.images)

    def __len__(self) -> int:
        return len(self._episode.images)


def frame_at(episode: Episode, step: int) -> Frame:
    """The frame of one step as a memory bank would keep it; its images are read when they are looked at."""
    return Frame(step, step / episode.control_hz, StepImages(episode, step))


def observation_at(episode: Episode, step: int) -> Observation:
    """What the robot sensed at one step of an episode."""
    frame = frame_at(episode, step)
    return Observation(step, frame.images, episode.state[step], frame.time_s)

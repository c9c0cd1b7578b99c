"""What the planner would have seen at any step of an episode. The same memory as at run time is replayed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from memory_bank import MemoryConfig, make_memory
from predimem.core.episodes import Episode, SubtaskSpan
from predimem.core.frames import StepImages
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
    """`replay[t]` is the snapshot at step t, a multiple of `every`, of an episode whose planner nominates these frames.

    Images are read when they are looked at, so that a few snapshots of a long episode cost little. The memory bank
    looks at none; a memory of one's own may.

    nominated: the steps of the frames that the planner nominates, as they happen; or (frame, the step at which it is
        nominated).
    lag_steps: for a memory that is told them, how many control steps after the recording the planner names its
        subtasks; negative if it names them too early.
    subtasks: what the planner names and when, for a memory that is told it; default: the episode's. `named` is the
        episode with these.
    """

    def __init__(
        self,
        episode: Episode,
        memory: MemoryConfig,
        nominated: Sequence[int | tuple[int, int]],
        lag_steps: int = 1,
        subtasks: tuple[SubtaskSpan, ...] | None = None,
        every: int = 1,
    ):
        self._snapshots: dict[int, MemorySnapshot] = {}
        bank = make_memory(memory)
        notes_subtasks = memory.past_subtasks or memory.implementation is not None
        self.named = episode if subtasks is None else replace(episode, subtasks=subtasks)
        bank.reset(f"{episode.task}-{episode.seed}", episode.instruction)
        due: dict[int, list[int]] = {}
        for frame, at in (entry if isinstance(entry, tuple) else (entry, entry) for entry in nominated):
            due.setdefault(at, []).append(frame)
        for step in range(len(episode)):
            bank.observe(observation_at(episode, step))
            if step in due:
                bank.nominate(due[step])
            if notes_subtasks and step >= lag_steps:
                bank.note_subtask(self.named.subtask_at(min(step - lag_steps, len(episode) - 1)))
            if step % every == 0:
                self._snapshots[step] = bank.snapshot()

    def __getitem__(self, step: int) -> MemorySnapshot:
        return self._snapshots[step]


def frame_at(episode: Episode, step: int) -> Frame:
    """The frame of one step as a memory bank would keep it; its images are read when they are looked at."""
    return Frame(step, step / episode.control_hz, StepImages(episode.images, step))


def observation_at(episode: Episode, step: int) -> Observation:
    """What the robot sensed at one step of an episode."""
    frame = frame_at(episode, step)
    return Observation(step, frame.images, episode.state[step], frame.time_s)


def on_grid(steps: Sequence[int], step_grid: int, episode: Episode) -> list[int]:
    """Each step, moved to the next multiple of `step_grid` that the episode has."""
    last = (len(episode) - 1) // step_grid * step_grid
    return [min(-(-step // step_grid) * step_grid, last) for step in steps]

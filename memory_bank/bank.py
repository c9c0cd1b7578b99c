"""The memory bank: M_t = M_t^key ∪ M_t^rec (RoboMemArena, arXiv:2605.10921, §4), one per episode, single-threaded.

Only the control thread changes it. Workers get immutable snapshots and give back plans, whose
nominations are absolute steps: the window has moved on by the time a plan arrives, so the bank
keeps the last `history_steps` frames for write-back. An image is copied once, when it is observed;
recent window, history, keyframes and snapshots all share that one read-only array.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from memory_bank.config import MemoryConfig
from memory_bank.selection import NominationClusters
from memory_bank.window import RecentWindow
from predimem.core.types import Frame, MemorySnapshot, Observation


class MemoryBank:
    """Call `reset`, then for every control step `observe`, `nominate` what arrived, `snapshot`."""

    def __init__(self, config: MemoryConfig | None = None):
        self.config = config or MemoryConfig()
        self.reset("", "")

    def reset(self, episode_id: str, instruction: str) -> None:
        """Forget everything and begin an episode."""
        self._episode_id = episode_id
        self._instruction = instruction
        self._window = RecentWindow(self.config)
        self._history: dict[int, Frame] = {}  # insertion order is step order
        self._clusters = NominationClusters(self.config.cluster_gap_steps, self.config.history_steps)
        self._nominated: dict[int, Frame] = {}
        self._settled: deque[Frame] = deque(maxlen=self.config.keyframe_capacity)
        self._settled_nominations: deque[tuple[int, ...]] = deque(maxlen=self.config.keyframe_capacity)
        self._keyframes: tuple[Frame, ...] = ()
        self._nominations: tuple[tuple[int, ...], ...] = ()
        self._subtasks: list[str] = []

    def observe(self, observation: Observation) -> None:
        """Take in the frame of one control step. Raises ValueError unless steps increase."""
        frame = self._window.add(observation)
        self._history[frame.step] = frame
        if len(self._history) > self.config.history_steps:
            del self._history[next(iter(self._history))]

    def nominate(self, steps: Iterable[int]) -> None:
        """Count the planner's nominations (absolute steps) and renew the keyframes.

        A step that has left the history is dropped, and so is one within a cluster that does not change any more.
        Raises ValueError for a step that has not been observed yet.
        """
        if not self.config.keyframes:
            return
        changed, last = False, self._window.last
        for step in steps:
            if last is None or step > last.step:
                raise ValueError(f"step {step} was nominated as a keyframe before it was observed")
            if step not in self._history:
                continue
            self._settle(now=last.step)
            if self._settled_nominations and step <= self._settled_nominations[-1][-1]:
                continue
            self._nominated[step] = self._history[step]
            self._clusters.add(step)
            changed = True
        if changed:
            medians = (self._nominated[step] for step in self._clusters.medians())
            keyframes = (*self._settled, *medians)
            nominations = (*self._settled_nominations, *self._clusters.steps())
            shown = slice(None) if (capacity := self.config.keyframe_capacity) is None else slice(-capacity, None)
            self._keyframes, self._nominations = keyframes[shown], nominations[shown]

    def note_subtask(self, subtask: str) -> None:
        """Remember an answer of the planner; one that is repeated counts once."""
        if self.config.past_subtasks and (not self._subtasks or self._subtasks[-1] != subtask):
            self._subtasks.append(subtask)

    def snapshot(self) -> MemorySnapshot:
        """What the planner may see now. Raises ValueError before the first observation."""
        recent, keyframes = self._window.frames(), self._window.older(self._keyframes)
        past = tuple(self._subtasks)
        return MemorySnapshot(self._episode_id, recent[-1].step, self._instruction, recent, keyframes, past)

    def upcoming(self, steps: int) -> MemorySnapshot:
        """What is known already of the snapshot that will be asked for `steps` observations later: it lacks the frames
        that are still to come, and what changes until then. Raises ValueError before the first observation."""
        recent, keyframes = self._window.upcoming(steps, self._keyframes)
        assert self._window.last is not None
        step, past = self._window.last.step + steps, tuple(self._subtasks)
        return MemorySnapshot(self._episode_id, step, self._instruction, recent, keyframes, past)

    @property
    def keyframe_steps(self) -> tuple[int, ...]:
        """Steps of the keyframe buffer, oldest first."""
        return tuple(frame.step for frame in self._keyframes)

    @property
    def nominations(self) -> tuple[tuple[int, ...], ...]:
        """For each keyframe, in the order of `keyframe_steps`: the nominated steps whose lower median it is, sorted,
        repeats kept."""
        return self._nominations

    def _settle(self, now: int) -> None:
        for cluster in self._clusters.seal(now):
            self._settled.append(self._nominated[cluster.median])
            self._settled_nominations.append(tuple(cluster.steps))
            for step in set(cluster.steps):
                del self._nominated[step]

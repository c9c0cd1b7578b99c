"""The memory behind a network: observations may be far apart, come twice, or come from the disk."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping

import numpy as np

from memory_bank import MemoryBank, MemoryConfig, RecentWindow, make_memory
from memory_bank.own import HostedMemory
from memory_bank.retrieval.gate import Admission
from memory_bank.retrieval.memory import NOTHING
from memory_bank.store import DamagedImage, MemoryStore, StoredEpisode, StoredPlan
from predimem.core.types import Frame, History, MemorySnapshot, Observation, Plan

log = logging.getLogger(__name__)


class SessionBank:
    """A memory that sees one frame at every control step, whatever the client's rate. Implements `FullMemory`.

    Where steps are left out (a client that asks once for each chunk) the last image holds until the next one, as
    it does in demonstrations that were filmed at a lower rate. So windows and strides keep their meaning in control
    steps. An observation of the last step again, from a client that asks again, changes nothing.

    Nominations come through `announce`, from the planner's thread and in the order in which they were stored: where
    two answers come between two requests, the agent takes the newer one alone, and the keyframes of both are kept.
    """

    def __init__(self, config: MemoryConfig):
        self.config = config
        self._memory = make_memory(config)
        self.reset("", "")

    def reset(self, episode_id: str, instruction: str) -> None:
        self._memory.reset(episode_id, instruction)
        self._window = RecentWindow(self.config)
        self._seen: dict[int, Frame] = {}  # the last `history_steps` frames
        self._shown: tuple[Frame, ...] = ()  # the keyframes of the last snapshot
        self._kept: set[int] = set()  # steps whose images are on the disk
        self._announced: deque[tuple[int, ...]] = deque()

    @property
    def recalls(self) -> bool:
        """Whether the memory looks at earlier sessions, so that it is worth reading them."""
        return isinstance(self._memory, HostedMemory) and self._memory.recalls

    def recall(self, history: History) -> None:
        """After `reset`, before the first observation."""
        if isinstance(self._memory, HostedMemory):
            self._memory.recall(history)

    @property
    def admission(self) -> Admission | None:
        """Which earlier session is shown in this episode, and why; None where none was looked for."""
        found = self._memory.admission if isinstance(self._memory, HostedMemory) else None
        return found if isinstance(found, Admission) and found is not NOTHING else None

    def announce(self, steps: tuple[int, ...], kept: Iterable[int] = ()) -> None:
        """Nominations for the next `nominate` to count. kept: the steps whose images were stored with them."""
        self._kept.update(kept)
        self._announced.append(steps)

    def nominate(self, steps: Iterable[int]) -> None:
        """Count what was announced; `steps`, of the plan that the agent takes, are among it, now or earlier."""
        while self._announced:
            self._memory.nominate(self._announced.popleft())

    def observe(self, observation: Observation) -> None:
        """Raises ValueError for a step before the last one."""
        last = self._window.last
        if last is not None:
            if observation.step == last.step:
                return
            first = max(last.step + 1, observation.step - self.config.window_steps + 1)
            seconds = (observation.time_s - last.time_s) / max(1, observation.step - last.step)
            for step in range(first, observation.step):
                time_s = last.time_s + (step - last.step) * seconds
                self._see(step, time_s, last.images, observation.state)
        self._see(observation.step, observation.time_s, observation.images, observation.state)

    def note_subtask(self, subtask: str) -> None:
        self._memory.note_subtask(subtask)

    def snapshot(self) -> MemorySnapshot:
        snapshot = self._memory.snapshot()
        self._shown = snapshot.keyframes
        return snapshot

    def upcoming(self, steps: int) -> MemorySnapshot:
        return self._memory.upcoming(steps)

    @property
    def keyframe_steps(self) -> tuple[int, ...]:
        return self._memory.keyframe_steps

    @property
    def nominations(self) -> tuple[tuple[int, ...], ...]:
        """Those behind each keyframe, as `MemoryBank.nominations`; empty for a memory of one's own, which chooses its
        keyframes in its own way."""
        return self._memory.nominations if isinstance(self._memory, MemoryBank) else ()

    def frame(self, step: int) -> Frame | None:
        """The frame of a step that can still be nominated, or is a keyframe. Any thread may ask."""
        found = self._seen.get(step)
        return found or next((frame for frame in self._shown if frame.step == step), None)

    def to_keep(self, snapshot: MemorySnapshot) -> dict[int, Frame]:
        """The keyframes that a memory of one's own chose itself, and that are not on the disk yet, for a restart.

        The memory bank's are the nominated ones, which are stored anyway. Images that the memory made itself are left
        out: they are none that it could observe again.
        """
        if self.config.implementation is None:
            return {}
        new = (frame for frame in snapshot.keyframes if frame.step not in self._kept)
        return {frame.step: frame for frame in new if _same_images(frame, self._seen.get(frame.step))}

    @property
    def last_step(self) -> int | None:
        """That of the newest observation."""
        last = self._window.last
        return None if last is None else last.step

    def _see(self, step: int, time_s: float, images: Mapping[str, np.ndarray], state: np.ndarray) -> None:
        frame = self._window.add(Observation(step, images, state, time_s))
        self._memory.observe(Observation(step, frame.images, state, time_s))  # the frame's images are copied no more
        self._seen[step] = frame
        if len(self._seen) > self.config.history_steps:
            del self._seen[next(iter(self._seen))]


def restore(
    bank: SessionBank, resume: Callable[[Plan], None], store: MemoryStore, episode: StoredEpisode, state_dim: int
) -> None:
    """Put a kept episode's images and plans into a bank that was just reset.

    The plans are replayed in their order (`resume` is the agent's), so the memory bank's keyframes and subtask are
    those that were held. A memory of one's own observes every image that was kept, among them the keyframes that it
    showed the planner; where it decides by images in between, which were not kept, it may decide otherwise.
    """
    for _ in replay(bank, resume, store, episode, state_dim):
        pass
    if bank.last_step is not None:
        bank.snapshot()  # a memory of one's own tells its keyframes by it
    bank.announce((), kept=episode.image_steps)


def replay(
    bank: SessionBank, resume: Callable[[Plan], None], store: MemoryStore, episode: StoredEpisode, state_dim: int
) -> Iterator[StoredPlan]:
    """`restore`, plan by plan: each is yielded when the bank has taken it."""
    state = np.zeros(state_dim, np.float32)
    there = set(episode.image_steps)
    nominated = {step for plan in episode.plans for step in plan.keyframe_steps} & there
    last_plan = episode.plans[-1].step if episode.plans else 0
    window = {step for step in there if step > last_plan - bank.config.window_steps}
    due = sorted(nominated | window if bank.config.implementation is None else there)
    for stored in episode.plans:
        while due and due[0] <= stored.step:
            step = due.pop(0)
            try:
                frame = store.frame(episode.key, step)
            except DamagedImage as error:
                log.warning("step %d of %s is not restored: %s", step, episode.episode_id, error)
                nominated.discard(step)
                continue
            bank.observe(Observation(frame.step, frame.images, state, frame.time_s))
        steps = tuple(step for step in stored.keyframe_steps if step in nominated)
        bank.announce(steps)
        told = {"confidence": stored.confidence, "next_subtasks": stored.next_subtasks}
        resume(Plan(episode.episode_id, stored.step, stored.subtask, steps, stored.text, **told))
        yield stored


def _same_images(frame: Frame, seen: Frame | None) -> bool:
    """Whether the images are those that were observed; they are passed on, not copied."""
    return seen is not None and all(seen.images.get(name) is image for name, image in frame.images.items())

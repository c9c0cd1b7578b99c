"""The memory bank behind a network: observations may be far apart, come twice, or come from the disk."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable

import numpy as np

from memory_bank import MemoryBank
from predimem.core.types import Frame, Observation, Plan
from predimem.serving.store import EpisodeStore, StoredEpisode


class SessionBank(MemoryBank):
    """A bank that sees one frame at every control step, whatever the client's rate.

    Where steps are left out (a client that asks once for each chunk) the last image holds until the next one, as
    it does in demonstrations that were filmed at a lower rate. So windows and strides keep their meaning in control
    steps. An observation of the last step again, from a client that asks again, changes nothing.

    Nominations come through `announce`, from the planner's thread and in the order in which they were stored: where
    two answers come between two requests, the agent takes the newer one alone, and the keyframes of both are kept.
    """

    _announced: deque[tuple[int, ...]]

    def reset(self, episode_id: str, instruction: str) -> None:
        super().reset(episode_id, instruction)
        self._announced = deque()

    def announce(self, steps: tuple[int, ...]) -> None:
        """Nominations for the next `nominate` to count."""
        self._announced.append(steps)

    def nominate(self, steps: Iterable[int]) -> None:
        """Count what was announced; `steps`, of the plan that the agent takes, are among it, now or earlier."""
        while self._announced:
            super().nominate(self._announced.popleft())

    def observe(self, observation: Observation) -> None:
        """Raises ValueError for a step before the last one."""
        if self._recent:
            last = self._recent[-1]
            if observation.step == last.step:
                return
            first = max(last.step + 1, observation.step - self.config.window_steps + 1)
            seconds = (observation.time_s - last.time_s) / max(1, observation.step - last.step)
            for step in range(first, observation.step):
                time_s = last.time_s + (step - last.step) * seconds
                super().observe(Observation(step, last.images, observation.state, time_s))
        super().observe(observation)

    def frame(self, step: int) -> Frame | None:
        """The frame of a step that can still be nominated, or is a keyframe. Any thread may ask."""
        found = self._history.get(step)
        return found or next((frame for frame in self._keyframes if frame.step == step), None)

    @property
    def last_step(self) -> int | None:
        """That of the newest observation."""
        return self._recent[-1].step if self._recent else None


def restore(
    bank: SessionBank, resume: Callable[[Plan], None], store: EpisodeStore, episode: StoredEpisode, state_dim: int
) -> None:
    """Put a kept episode's images and plans into a bank that was just reset.

    The plans are replayed in their order (`resume` is the agent's), so keyframes and subtask are those that were held.
    """
    state = np.zeros(state_dim, np.float32)
    there = set(episode.image_steps)
    nominated = {step for plan in episode.plans for step in plan.keyframe_steps} & there
    last_plan = episode.plans[-1].step if episode.plans else 0
    window = {step for step in there if step > last_plan - bank.config.window_steps}
    due = sorted(nominated | window)
    for stored in episode.plans:
        while due and due[0] <= stored.step:
            frame = store.frame(episode.key, due.pop(0))
            bank.observe(Observation(frame.step, frame.images, state, frame.time_s))
        steps = tuple(step for step in stored.keyframe_steps if step in nominated)
        bank.announce(steps)
        resume(Plan(episode.episode_id, stored.step, stored.subtask, steps, stored.text, confidence=stored.confidence))

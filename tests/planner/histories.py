"""What several robots' planners are asked in turns, while their memories change in every way that a memory can."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from types import MappingProxyType

import numpy as np

from predimem.core.types import Frame, MemorySnapshot, PastSession
from tests.planner.builders import INSTRUCTION

CAMERAS = ("base_camera", "hand_camera")
CHANGES = ("append", "append", "insert", "replace", "evict", "reset", "nothing", "nothing")


@dataclass
class Robot:
    """A robot whose memory is changed at will. Images are noise, so that no two are alike.

    earlier: it is shown up to two earlier sessions, others in each episode.
    """

    name: str
    rng: random.Random
    window: int
    earlier: bool = False
    step: int = 0
    episode: int = 0
    changes: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._frames: dict[int, Frame] = {}
        self._keyframes: list[int] = []
        self._recent: list[int] = []
        self._sessions = self._draw_sessions()

    def ask(self) -> MemorySnapshot:
        """Time goes on, the memory changes, and the planner is asked."""
        self.changes.append(change := self.rng.choice(CHANGES))
        getattr(self, f"_{change}")()
        self.go_on(self.rng.choice((5, 10, 10, 10)))
        return self.snapshot()

    def go_on(self, steps: int = 10) -> None:
        self.step += steps
        self._recent = [*self._recent, self.step][-self.window :]

    def keep_as_keyframes(self, steps: Iterable[int]) -> None:
        self._keyframes = list(steps)

    def snapshot(self) -> MemorySnapshot:
        recent = [self._frame(step) for step in self._recent]
        first = self._recent[0] if self._recent else self.step + 1
        keyframes = [self._frame(step) for step in sorted(self._keyframes) if step < first]
        name = f"{self.name}-{self.episode}"
        return MemorySnapshot(
            name, self.step, INSTRUCTION, tuple(recent), tuple(keyframes), past_sessions=self._sessions
        )

    def foreseen(self) -> MemorySnapshot:
        """The next snapshot without its newest frame, as far as it is known."""
        known = self._recent[1:] if len(self._recent) == self.window else self._recent
        return replace(self.snapshot(), recent=tuple(self._frame(step) for step in known))

    def _append(self) -> None:
        self._keyframes += self._recent[:1]

    def _insert(self) -> None:
        self._keyframes.append(self.rng.randrange(self.step + 1))
        self._keyframes = sorted(set(self._keyframes))

    def _replace(self) -> None:
        if self._keyframes:
            place = self.rng.randrange(len(self._keyframes))
            self._keyframes[place] = self._keyframes[place] + 1
            self._keyframes = sorted(set(self._keyframes))

    def _evict(self) -> None:
        if self._keyframes:
            self._keyframes.pop(self.rng.choice((0, self.rng.randrange(len(self._keyframes)))))

    def _reset(self) -> None:
        self.episode, self.step = self.episode + self.rng.randrange(2), 0  # a new episode, or the same one again
        self._frames, self._keyframes, self._recent = {}, [], []
        self._sessions = self._draw_sessions()

    def _draw_sessions(self) -> tuple[PastSession, ...]:
        if not self.earlier:
            return ()
        steps = [[10 * k + session for k in range(self.rng.randint(1, 2))] for session in range(self.rng.randrange(3))]
        return tuple(
            PastSession(f"s{i}", 3600.0 * (i + 1), INSTRUCTION, tuple(map(self._drawn, own)))
            for i, own in enumerate(steps)
        )

    def _nothing(self) -> None:
        pass

    def _frame(self, step: int) -> Frame:
        if step not in self._frames:
            self._frames[step] = self._drawn(step)
        return self._frames[step]

    def _drawn(self, step: int) -> Frame:
        noise = np.random.default_rng([self.rng.randrange(1 << 30), step])
        images = {camera: noise.integers(0, 256, (64, 64, 3), np.uint8) for camera in CAMERAS}
        for image in images.values():
            image.flags.writeable = False
        return Frame(step, step / 20, MappingProxyType(images))


def history(seed: int, length: int, window: int, earlier: bool = False) -> Iterator[tuple[Robot, MemorySnapshot]]:
    """One to four robots that ask in turns. earlier: see `Robot`."""
    rng = random.Random(seed)
    robots = [Robot(f"robot-{i}", random.Random(f"{seed} {i}"), window, earlier) for i in range(rng.randint(1, 4))]
    for _ in range(length):
        robot = rng.choice(robots)
        yield robot, robot.ask()

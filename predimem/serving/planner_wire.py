"""Snapshots on their way to the planner's process, as plain data. An image crosses once, however often it is shown.

With 256 keyframes of two images a snapshot has 100 MB, of which one timestep is new.
"""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from predimem.core.types import Frame, MemorySnapshot, PastSession
from predimem.serving import wire


@dataclass(frozen=True)
class Job:
    """What the planner's process is to do.

    asked: the snapshots to plan. upcoming: what is known of a snapshot to come, to be prepared. forget: episodes about
    which there will be no more questions.
    """

    asked: Sequence[MemorySnapshot] = ()
    upcoming: MemorySnapshot | None = None
    forget: Sequence[str] = ()


class JobWriter:
    """The near end. One thread writes; images may go out of use in any."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """From now on nothing is said of images that were sent before: the other end forgets them."""
        self._anew = True
        self._sent: dict[int, tuple[weakref.ref[np.ndarray], int]] = {}
        self._gone: deque[int] = deque()
        self._count = 0

    def write(self, job: Job) -> bytes:
        gone = [self._gone.popleft() for _ in range(len(self._gone))]
        new: list[list[Any]] = []
        passing: dict[int, int] = {}  # images that may change, and are therefore sent again next time
        data = {
            "asked": [self._snapshot(snapshot, new, passing) for snapshot in job.asked],
            "upcoming": None if job.upcoming is None else self._snapshot(job.upcoming, new, passing),
            "forget": list(job.forget),
            "anew": self._anew,
            "gone": gone,
            "new": new,
        }
        try:
            packed = wire.pack(data)
        except BaseException:
            self.reset()
            raise
        self._gone.extend(passing.values())
        self._anew = False
        return packed

    def _snapshot(self, snapshot: MemorySnapshot, new: list[list[Any]], passing: dict[int, int]) -> dict[str, Any]:
        def frame_data(frame: Frame) -> list[Any]:
            places = [[name, self._number(image, new, passing)] for name, image in frame.images.items()]
            return [frame.step, frame.time_s, places, frame.state]

        return {
            "episode_id": snapshot.episode_id,
            "step": snapshot.step,
            "instruction": snapshot.instruction,
            "recent": [frame_data(frame) for frame in snapshot.recent],
            "keyframes": [frame_data(frame) for frame in snapshot.keyframes],
            "past_subtasks": list(snapshot.past_subtasks),
            "past_sessions": [
                [s.name, s.age_s, s.instruction, s.robot, s.person, [frame_data(frame) for frame in s.frames]]
                for s in snapshot.past_sessions
            ],
        }

    def _number(self, image: np.ndarray, new: list[list[Any]], passing: dict[int, int]) -> int:
        place = id(image)
        if place in passing:
            return passing[place]
        known = self._sent.get(place)
        if known is not None and known[0]() is image:
            return known[1]
        self._count += 1
        number = self._count
        new.append([number, image])
        if image.flags.writeable or image.base is not None:
            passing[place] = number
        else:
            sent, gone = self._sent, self._gone

            def dropped(reference: weakref.ref[np.ndarray]) -> None:
                if sent.get(place, (None,))[0] is reference:
                    del sent[place]
                gone.append(number)

            sent[place] = (weakref.ref(image, dropped), number)
        return number


class JobReader:
    """The far end: it holds the images that the near end holds."""

    def __init__(self) -> None:
        self.images: dict[int, np.ndarray] = {}

    def read(self, data: bytes) -> Job:
        """Raises WireError. The next job that is read has to be the first after a `JobWriter.reset` then."""
        found = wire.unpack(data, wire.NO_LIMIT, wire.NO_LIMIT)
        if found["anew"]:
            self.images.clear()
        for number in found["gone"]:
            self.images.pop(number, None)
        for number, array in found["new"]:
            image = array.copy()  # else it would hold the whole message
            image.flags.writeable = False
            self.images[number] = image
        upcoming = found["upcoming"]
        return Job(
            asked=[self._snapshot(each) for each in found["asked"]],
            upcoming=None if upcoming is None else self._snapshot(upcoming),
            forget=found["forget"],
        )

    def _snapshot(self, data: dict[str, Any]) -> MemorySnapshot:
        def frame(found: list[Any]) -> Frame:
            step, time_s, places, state = found
            images = MappingProxyType({name: self.images[number] for name, number in places})
            return Frame(step, time_s, images, None if state is None else state.copy())  # as with images

        def session(found: list[Any]) -> PastSession:
            name, age_s, instruction, robot, person, frames = found
            return PastSession(name, age_s, instruction, tuple(map(frame, frames)), robot, person)

        return MemorySnapshot(
            episode_id=data["episode_id"],
            step=data["step"],
            instruction=data["instruction"],
            recent=tuple(map(frame, data["recent"])),
            keyframes=tuple(map(frame, data["keyframes"])),
            past_subtasks=tuple(data["past_subtasks"]),
            past_sessions=tuple(map(session, data["past_sessions"])),
        )

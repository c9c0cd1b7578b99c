"""Recorded sessions in a folder: each is made once, when it is needed first."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from predimem.core.files import AtomicWrite
from predimem.core.types import Frame, PastSession
from predimem.envs.interference.conditions import PlannedSession


@dataclass(frozen=True, eq=False)
class Recorded:
    """A recorded session, or the first view of a test, which has one frame."""

    instruction: str
    frames: tuple[Frame, ...]


class RecordingFolder:
    """Sessions of robots with `control_hz` steps a second. One process after the other may use it; several at once
    record some sessions twice."""

    def __init__(self, folder: Path, control_hz: float):
        self._folder, self._control_hz = folder, control_hz
        self._known: dict[str, Recorded] = {}

    def get(self, name: str, record: Callable[[], Recorded]) -> Recorded:
        """The session of this name, whose images cannot be written to. `record` makes it where there is none, or one
        that cannot be read.
        """
        if name not in self._known:
            path = self._folder / f"{name}.npz"
            recorded = _read(path, self._control_hz)
            if recorded is None:
                recorded = record()
                _write(path, recorded)
            self._known[name] = _protected(recorded)
        return self._known[name]


def past_session(index: int, planned: PlannedSession, recorded: Recorded) -> PastSession:
    """Session `index` of a history as a memory gets it, without embeddings."""
    return PastSession(
        name=f"{index}-{planned.family}",
        age_s=planned.age_s,
        instruction=recorded.instruction,
        frames=recorded.frames,
        robot=planned.robot,
        person=planned.person,
        relevant=planned.relevant,
    )


def _protected(recorded: Recorded) -> Recorded:
    for frame in recorded.frames:
        for image in frame.images.values():
            image.flags.writeable = False
    return recorded


def _write(path: Path, recorded: Recorded) -> None:
    if not recorded.frames:
        raise ValueError(f"{path.stem} of {path.parent.name}: expected a session with images, got none")
    steps = np.array([frame.step for frame in recorded.frames], np.int64)
    cameras = {f"image:{c}": np.stack([f.images[c] for f in recorded.frames]) for c in recorded.frames[0].images}
    with AtomicWrite(path, ".partial.npz") as partial:
        np.savez_compressed(partial, instruction=np.array(recorded.instruction), steps=steps, **cameras)


def _read(path: Path, control_hz: float) -> Recorded | None:
    """None where there is none, or one that cannot be read, which is recorded anew."""
    if not path.is_file():
        return None
    try:
        with np.load(path) as data:
            cameras = {n.removeprefix("image:"): data[n] for n in data.files if n.startswith("image:")}
            steps, instruction = data["steps"].tolist(), str(data["instruction"])
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
        return None
    images = ({camera: every[i].copy() for camera, every in cameras.items()} for i in range(len(steps)))
    return Recorded(instruction, tuple(map(Frame, steps, (step / control_hz for step in steps), images)))

"""Import of RoboMME's released HDF5 files (`record_dataset_<task>.h5`, its doc/h5_data_format.md) as episodes.

Episode k of a file gets the seed of RoboMME's train episode k, so that its files and those that `predimem datagen`
makes of the same episodes have the same names. The conditioning video (`is_video_demo`) comes first, as there. Labels
are RoboMME's subgoals in our words (`predimem.envs.robomme.labels`). Every demonstration is a success.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import takewhile
from pathlib import Path
from typing import Any

import numpy as np

from datagen.demos.record import spans
from datagen.demos.robomme_rows import EpisodeRows
from predimem.core.episode_folder import episode_path
from predimem.core.episode_writer import EpisodeWriter
from predimem.core.episodes import VIDEO_STEPS
from predimem.core.frames import EpisodeError
from predimem.core.types import Observation
from predimem.envs.robomme.labels import WATCH, label_of_words
from predimem.envs.robomme.package import SPLITS, TASKS
from predimem.envs.robomme.robot import ACTION_DIM, CAMERAS, CONTROL_HZ, hold_action, resized, state_of
from predimem.jobs.journal import DataJournal
from predimem.jobs.runner import BackendConfig, run_jobs
from predimem.jobs.tasks import Job, Outcome

PREFIX = "record_dataset_"
IMAGES = ("front_rgb", "wrist_rgb")  # in the order of `CAMERAS`


def import_robomme(
    data: str | Path,
    out: str | Path,
    image_px: int | None = None,
    image_every: int = 1,
    workers: int = 1,
    progress: bool = True,
    retry_errors: bool = False,
) -> list[Outcome]:
    """Write an episode file for every episode of a file, or of all files in a folder, that `out` lacks; the outcomes of
    all of them.

    image_px: images are scaled to this width and height; None: they stay as they are. image_every: of every so many
    control steps one image of each camera is taken. An interrupted import goes on; JournalError is raised where `out`
    was made with other settings. Raises EpisodeError where there are no files, for names that are not RoboMME's, and
    for two files of a task. An episode that is missing something, damaged or of another layout is told of, with its
    file and place, and left out; see `run_jobs`.
    """
    found: dict[Job, tuple[Path, int]] = {}
    for path, task in files_of(data):
        for number in _numbers(path):
            job = Job(task, _seed(path, number))
            if job in found:
                raise EpisodeError(f"{path} and {found[job][0]} both have the episodes of {task}: import one of them")
            found[job] = path.resolve(), number
    with DataJournal(out, {"image_px": image_px, "image_every": image_every}) as journal:
        make = partial(RobommeImportWorker, found, str(Path(out).absolute()), image_px, image_every)
        return run_jobs(list(found), make, journal, BackendConfig(workers), progress, retry_errors)


class RobommeImportWorker:
    """A `predimem.jobs.tasks.Worker`: a job is an episode of a file."""

    def __init__(self, found: Mapping[Job, tuple[Path, int]], out: str, image_px: int | None, image_every: int) -> None:
        self._found, self._out, self._px, self._every = found, out, image_px, image_every

    def play(self, job: Job) -> Outcome:
        began_s = time.perf_counter()
        path, number = self._found[job]
        target = episode_path(self._out, job.task, job.seed)
        steps = _import_episode(path, job, number, target, self._px, self._every)
        return Outcome(job.task, job.seed, kept=True, steps=steps, seconds=time.perf_counter() - began_s)

    def close(self) -> None:
        pass


def files_of(data: str | Path) -> list[tuple[Path, str]]:
    """(file, task) of a file or of those in a folder. Raises EpisodeError where there are none."""
    data = Path(data)
    paths = sorted(data.rglob(f"{PREFIX}*.h5")) if data.is_dir() else [data]
    if not paths or not paths[0].is_file():
        raise EpisodeError(f"{data}: expected a file {PREFIX}<task>.h5 of RoboMME, or a folder with such files")
    return [(path, _task(path)) for path in paths]


def _task(path: Path) -> str:
    task = path.stem.removeprefix(PREFIX)
    if not path.stem.startswith(PREFIX) or task not in TASKS:
        raise EpisodeError(f"{path}: expected a name {PREFIX}<task>.h5, with a task of {', '.join(TASKS)}")
    return task


def _numbers(path: Path) -> list[int]:
    with _opened(path) as file:
        numbers = sorted(int(found[1]) for name in file if (found := re.fullmatch(r"episode_(\d+)", name)))
    if not numbers:
        raise EpisodeError(f"{path} has no groups episode_<number>")
    return numbers


def _seed(path: Path, number: int) -> int:
    first, count = SPLITS["train"]
    if number >= count:
        raise EpisodeError(f"{path}: episode_{number}: RoboMME has {count} train episodes of a task, numbered from 0")
    return first + number


def _import_episode(path: Path, job: Job, number: int, target: Path, px: int | None, every: int) -> int:
    """How many steps it has."""
    with _opened(path) as file:
        episode = _Reader(path, f"episode_{number}", file[f"episode_{number}"])
        steps = episode.timesteps()
        native: list[tuple[int, ...]] = [episode.image(steps[0], name).shape for name in IMAGES]
        sizes = [(height, width) if px is None else (px, px) for height, width, _ in native]
        size: dict[str, tuple[int, int]] = dict(zip(CAMERAS, sizes, strict=True))
        with EpisodeWriter(target, "robomme", job.task, job.seed, CONTROL_HZ, size) as writer:
            rows, images, last, video_steps = EpisodeRows(writer), {}, None, 0
            for place, step in enumerate(steps):
                if place % every == 0:
                    views = (episode.image(step, name) for name in IMAGES)
                    images = {name: resized(view, size[name]) for name, view in zip(CAMERAS, views, strict=True)}
                state = state_of(
                    *(episode.numbers(step, "obs", f"{part}_state") for part in ("joint", "gripper", "eef"))
                )
                if shown := episode.flag(step, "is_video_demo"):
                    if video_steps < len(rows):
                        raise EpisodeError(
                            f"{path}: episode_{number}/{step}: a conditioning video after the robot acted"
                        )
                    video_steps += 1
                last = episode.action(step, last, state)
                label = WATCH if shown else episode.label(steps[place:], native[0][0])
                rows.add(Observation(place, images, state, place / CONTROL_HZ), last, label)
            writer.finish(
                instruction=episode.instruction(),
                success=True,
                subtasks=spans(rows.labels),
                keyframes=rows.keyframes((), video_steps),
                metadata={VIDEO_STEPS: video_steps, "imported_from": path.name, "robomme_seed": episode.setup_seed()},
            )
    return len(steps)


class _Reader:
    """One episode of a file. Raises EpisodeError that says where, what was expected and what came."""

    def __init__(self, path: Path, name: str, group: Any):
        self._where, self._group = f"{path}: {name}", group
        self._subgoal: tuple[str | None, str] = None, ""  # the last one, and its label

    def timesteps(self) -> list[str]:
        found = [name for name in self._group if re.fullmatch(r"timestep_\d+", name)]
        if not found:
            raise EpisodeError(f"{self._where} has no groups timestep_<number>")
        return sorted(found, key=lambda name: int(name.rpartition("_")[2]))

    def image(self, step: str, name: str) -> np.ndarray:
        image = self._value(f"{step}/obs/{name}")
        if getattr(image, "dtype", None) != np.uint8 or image.ndim != 3 or image.shape[2] != 3:
            came = f"{getattr(image, 'dtype', type(image).__name__)} {list(np.shape(image))}"
            raise EpisodeError(f"{self._where}/{step}/obs/{name}: expected uint8 [height, width, 3], got {came}")
        return image

    def numbers(self, step: str, group: str, name: str) -> np.ndarray:
        expected = {"joint_state": 7, "gripper_state": 2, "eef_state": 6}[name]
        value = np.asarray(self._value(f"{step}/{group}/{name}")).reshape(-1)
        if value.dtype.kind not in "fiu" or len(value) < expected or not np.isfinite(value).all():
            came = f"{value.dtype} {list(value.shape)}"
            raise EpisodeError(f"{self._where}/{step}/{group}/{name}: expected {expected} finite numbers, got {came}")
        return value

    def action(self, step: str, last: np.ndarray | None, state: np.ndarray) -> np.ndarray:
        """float32 [8]. RoboMME writes "None" where nothing was commanded: there the arm stays where it is."""
        value = self._value(f"{step}/action/joint_action")
        if isinstance(value, bytes | str):
            return hold_action(last, state)
        action = np.asarray(value, np.float32).reshape(-1)
        if len(action) == ACTION_DIM - 1:  # with a stick in place of a gripper
            action = np.append(action, np.float32(-1.0))
        if len(action) != ACTION_DIM or not np.isfinite(action).all():
            where = f"{self._where}/{step}/action/joint_action"
            raise EpisodeError(f"{where}: expected {ACTION_DIM} finite numbers, got {list(action.shape)}")
        return action

    def label(self, steps: Sequence[str], size_px: int) -> str:
        """Of the first of these steps. Where its place is missing, because it is out of view, the subgoal has it at
        another step."""
        name, grounded = self._words(steps[0])
        label = label_of_words(name, grounded, size_px)
        if label is None and name == self._subgoal[0]:
            label = self._subgoal[1]
        if label is None:
            later = takewhile(lambda words: words[0] == name, map(self._words, steps))
            label = next(filter(None, (label_of_words(*words, size_px) for words in later)), None)
        if not label:
            where = f"{self._where}/{steps[0]}/info/grounded_subgoal"
            raise EpisodeError(f"{where}: expected a place <y, x> for {name!r}, got {grounded!r}")
        self._subgoal = name, label
        return label

    def _words(self, step: str) -> tuple[str, str]:
        """The subgoal's name, and the same with its places."""
        return self._text(f"{step}/info/simple_subgoal"), self._text(f"{step}/info/grounded_subgoal")

    def flag(self, step: str, name: str) -> bool:
        return bool(np.reshape(np.asarray(self._value(f"{step}/info/{name}")), -1)[0])

    def instruction(self) -> str:
        goals = np.asarray(self._value("setup/task_goal"), object).reshape(-1)
        return _decoded(goals[0])

    def setup_seed(self) -> int:
        return int(np.reshape(np.asarray(self._value("setup/seed")), -1)[0])

    def _text(self, name: str) -> str:
        return _decoded(self._value(name))

    def _value(self, name: str) -> Any:
        try:
            return self._group[name][()]
        except (KeyError, OSError, RuntimeError) as error:
            raise EpisodeError(f"{self._where}/{name} cannot be read (missing or damaged): {error}") from error


def _decoded(value: Any) -> str:
    value = value.item() if isinstance(value, np.ndarray | np.generic) and np.ndim(value) == 0 else value
    return value.decode() if isinstance(value, bytes) else str(value)


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    import h5py

    try:
        file = h5py.File(path, "r")
    except OSError as error:
        raise EpisodeError(f"{path} cannot be read (truncated or damaged?): {error}") from error
    with file:
        yield file

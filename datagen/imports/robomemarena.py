"""Import of RoboMemArena's HDF5 files, released or exported: the subtasks of a task and seed become one episode.

The state gets the arena's layout (`arena_state`); images and actions are taken as they are. Keyframes are
recomputed by Eq. 1-3 (`datagen.keyframes`). Released files do not hold the instruction, the rate or the
outcome: the instruction is the one that is given, else our task's of the same number (of the variant with the
same subtasks, if there is one), the rate 20 Hz, and every demonstration counts as a success.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from datagen.export.arena_state import OPENING, POSITION, arena_state
from datagen.export.robomemarena import CAMERAS, read_note
from datagen.keyframes import KeyframeConfig, extract_keyframes
from predimem.core.episode_folder import episode_path
from predimem.core.episode_writer import save_episode
from predimem.core.episodes import Episode, SubtaskSpan
from predimem.core.frames import EpisodeError, Frames
from predimem.core.progress import watched
from predimem.core.subtask_labels import calls
from predimem.envs.arena.task import Task
from predimem.envs.arena.tasks import TASKS

SUITE = "robomemarena"
CONTROL_HZ = 20.0
BLOCK = 32  # images that are read at once
WIDTHS = {"actions": 7, "obs/ee_states": 6, "obs/gripper_states": 2, "obs/joint_states": 7}
FILE_NAME = re.compile(r"(?P<primitive>.+)_(?P<order>\d+)_seed(?P<seed>\d+)_task(?P<task>\d+)\.hdf5")


@dataclass(frozen=True)
class SubtaskFile:
    """One file, by its name. order counts from 0."""

    path: Path
    label: str
    order: int
    seed: int
    task_id: int


@dataclass(frozen=True, eq=False)
class _Segment:
    """What a file holds but for its images, of which only the shapes are known: camera -> (T, H, W, 3)."""

    path: Path
    group: str
    arrays: Mapping[str, np.ndarray]
    shapes: Mapping[str, tuple[int, ...]]
    note: Mapping[str, Any]


class _Images:
    """The images of one camera in all files of an episode. They are read in blocks, since released files may
    keep many in one compressed piece; the last block is held."""

    def __init__(self, segments: Sequence[_Segment], camera: str) -> None:
        self._segments, self._camera = segments, camera
        self._starts = np.cumsum([0, *(segment.shapes[camera][0] for segment in segments)])
        self.shape = (int(self._starts[-1]), *segments[0].shapes[camera][1:])
        self._held, self._block = (-1, -1), np.zeros(0, np.uint8)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, row: int, /) -> np.ndarray:
        number = int(np.searchsorted(self._starts, row, side="right")) - 1
        block, offset = divmod(row - int(self._starts[number]), BLOCK)
        if self._held != (number, block):
            self._block, self._held = self._read(self._segments[number], block * BLOCK), (number, block)
            self._block.flags.writeable = False
        return self._block[offset]

    def __iter__(self) -> Iterator[np.ndarray]:
        return (self[row] for row in range(len(self)))

    def _read(self, segment: _Segment, start: int) -> np.ndarray:
        import h5py

        try:
            with h5py.File(segment.path, "r") as file:
                images: Any = file[f"data/{segment.group}/obs/{self._camera}"]
                return images[start : start + BLOCK]
        except (OSError, RuntimeError, KeyError, ValueError, TypeError) as error:  # h5py raises any of these
            raise EpisodeError(f"{segment.path} cannot be read (truncated or damaged?): {error}") from error


def import_robomemarena(
    data: str | Path, out: str | Path, config: KeyframeConfig | None = None, progress: bool = True
) -> int:
    """Write an episode file for every task and seed below the folder `data`; how many there are then.

    Episodes that are in `out` already are left as they are, so that an interrupted import goes on.
    Raises EpisodeError, naming the file, for what is missing, damaged or of another layout.
    """
    groups = group_files(data)
    for files in watched(groups.values(), len(groups), "episodes", shown=progress):
        target = episode_path(out, task_of(files).name, files[0].seed)
        if not target.exists():
            save_episode(target, import_episode(files, config))
    return len(groups)


def group_files(data: str | Path) -> dict[tuple[int, int], list[SubtaskFile]]:
    """(task id, seed) -> its files by order. Raises EpisodeError for none, misnamed or doubled files."""
    groups: dict[tuple[int, int], list[SubtaskFile]] = {}
    for path in sorted(Path(data).rglob("*.hdf5")):
        if path.parent.name == "subtask_data":
            file = parse_name(path)
            groups.setdefault((file.task_id, file.seed), []).append(file)
    if not groups:
        raise EpisodeError(f"no files <category>/<task>_dataset/subtask_data/*.hdf5 under {data}")
    for files in groups.values():
        files.sort(key=lambda file: file.order)
        for one, other in pairwise(files):
            if one.order == other.order:
                raise EpisodeError(f"{one.path} and {other.path} are the same subtask of the same episode")
    return dict(sorted(groups.items()))


def parse_name(path: Path) -> SubtaskFile:
    match = FILE_NAME.fullmatch(path.name)
    if match is None:
        raise EpisodeError(f"{path}: expected a name <primitive>_<order>_seed<seed>_task<task id>.hdf5")
    label = match["primitive"].replace("_", " ")
    return SubtaskFile(path, label, int(match["order"]), int(match["seed"]), int(match["task"]))


def import_episode(
    files: Sequence[SubtaskFile], config: KeyframeConfig | None = None, instruction: str | None = None
) -> Episode:
    """The episode whose subtasks are in `files`, by order; its images stay there. Raises EpisodeError as above.

    instruction: what the robot was told, in place of what the files or our task say.
    """
    first, task = files[0], task_of(files)
    segments = [_read(file.path) for file in files]
    _check_complete(files, int(segments[0].note.get("subtasks", task.stages)))
    _check_alike(files, segments)
    ends = np.cumsum([len(segment.arrays["actions"]) for segment in segments]).tolist()
    note = segments[0].note
    labels = note.get("labels") or [file.label for file in files]
    spans = zip([0, *ends[:-1]], ends, labels, strict=True)
    arrays = {name: np.concatenate([s.arrays[name] for s in segments]) for name in segments[0].arrays}
    state = arena_state(arrays["obs/ee_states"], arrays["obs/gripper_states"], arrays["obs/joint_states"])
    hz = float(note.get("control_hz", CONTROL_HZ))
    return Episode(
        benchmark=note.get("suite", SUITE),
        task=task.name,
        seed=first.seed,
        instruction=instruction or note.get("instruction") or _instruction(task, labels),
        control_hz=hz,
        success=bool(note.get("success", True)),
        images={camera: Frames(_Images(segments, camera)) for camera in CAMERAS},
        state=state,
        actions=arrays["actions"].astype(np.float32),
        subtasks=tuple(SubtaskSpan(start, end, label) for start, end, label in spans),
        keyframes=extract_keyframes(state[:, POSITION], state[:, OPENING], hz, config),
        goal=note.get("goal", ""),
        metadata=note.get("metadata", {}),
    )


def task_of(files: Sequence[SubtaskFile]) -> Task:
    """That of our tasks which has their number. Raises EpisodeError where there is none."""
    for task in TASKS:
        if task.task_id == files[0].task_id:
            return task
    raise EpisodeError(f"{files[0].path}: there is no task {files[0].task_id}; known are 1 to {len(TASKS)}")


def _instruction(task: Task, labels: list[str]) -> str:
    same = [v for v in task.variants if all(map(calls, labels, (s.label for s in v.subtasks)))]
    return (same or task.variants)[0].instruction


def _check_complete(files: Sequence[SubtaskFile], expected: int) -> None:
    missing = sorted(set(range(max(expected, files[-1].order + 1))) - {file.order for file in files})
    if missing:
        where = f"{files[0].path.parent}, seed {files[0].seed}, task {files[0].task_id}"
        raise EpisodeError(f"{where}: the files of the subtasks {', '.join(map(str, missing))} are missing")


def _check_alike(files: Sequence[SubtaskFile], segments: Sequence[_Segment]) -> None:
    for file, segment in zip(files, segments, strict=True):
        for camera in CAMERAS:
            found, expected = (s.shapes[camera][1:] for s in (segment, segments[0]))
            if found != expected:
                raise EpisodeError(f"{file.path}: {camera} is {found}, in {files[0].path.name} {expected}")
        if segment.note.get("checksum") != segments[0].note.get("checksum"):
            raise EpisodeError(f"{file.path} and {files[0].path.name} were exported from different episodes")


def _read(path: Path) -> _Segment:
    import h5py

    try:
        with h5py.File(path, "r") as file:
            data: Any = file["data"]
            demos = [name for name in data if name.startswith("demo_")]
            if len(demos) != 1:
                raise EpisodeError(f"{path}: expected one group data/demo_<n>, found {len(demos)}")
            demo = data[demos[0]]
            arrays = {name: np.asarray(demo[name]) for name in WIDTHS}
            _check_arrays(path, arrays, {camera: demo[f"obs/{camera}"] for camera in CAMERAS})
            shapes = {camera: demo[f"obs/{camera}"].shape for camera in CAMERAS}
            return _Segment(path, demos[0], arrays, shapes, read_note(data))
    except EpisodeError:
        raise
    except (OSError, RuntimeError, KeyError, ValueError, TypeError) as error:  # h5py raises any of these
        raise EpisodeError(f"{path} cannot be read (truncated or damaged?): {error}") from error


def _check_arrays(path: Path, arrays: Mapping[str, np.ndarray], images: Mapping[str, Any]) -> None:
    steps = len(arrays["actions"]) if arrays["actions"].ndim else 0
    named = {**arrays, **{f"obs/{camera}": dataset for camera, dataset in images.items()}}
    for name, array in named.items():
        image = name not in WIDTHS
        good = array.ndim == 4 and array.shape[3] == 3 if image else array.shape[1:] == (WIDTHS[name],)
        if not good or image != (array.dtype == np.uint8):
            expected = "uint8 [T, H, W, 3]" if image else f"numbers [T, {WIDTHS[name]}]"
            raise EpisodeError(f"{path}: {name} has to be {expected}, it is {array.dtype} {list(array.shape)}")
        if not image and not np.isfinite(array).all():
            raise EpisodeError(f"{path}: {name} holds values that are not finite")
        if len(array) != steps or steps == 0:
            raise EpisodeError(f"{path}: {name} has {len(array)} steps, the actions have {steps}; 1 or more, all equal")

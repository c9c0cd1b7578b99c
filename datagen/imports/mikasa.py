"""The demonstrations released with MIKASA-Robo-VLA, in either of their formats: LeRobotDataset v3.0, or RLDS.

Both come as one folder for each task, named as the suite names data sets (`remember_color_3_vla_v0`). They hold what
the suite's wrapped environment shows, so an episode is like one that `predimem datagen` makes of MIKASA, but for its
labels: the releases name no subtasks. Their LeRobot files say 10 Hz; the suite's simulator has 20 control steps a
second, and that is what episodes say.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

from datagen.export.dimensions import ACTION_KEY, DELTA_POSE, MIKASA, STATE_KEY
from datagen.imports import subtasks as spans
from datagen.imports.lerobot_dataset import LeRobotDataset, open_lerobot
from datagen.imports.rlds import RldsDataset, open_rlds
from datagen.imports.source import SourceEpisode
from datagen.imports.subtasks import INSTRUCTION, SpanTable
from datagen.keyframes import KeyframeConfig, extract_keyframes
from predimem.core.frames import EpisodeError
from predimem.core.seeds import DEMONSTRATION_SEEDS
from predimem.jobs.tasks import Job

CONTROL_HZ = 20.0
CAMERAS = ("base_camera", "hand_camera")
LEROBOT = {"base_camera": "observation.images.top", "hand_camera": "observation.images.wrist"}
RLDS = {"base_camera": "steps/observation/image", "hand_camera": "steps/observation/wrist_image"}
POSITION, OPENING, DIM = slice(0, 3), 6, len(MIKASA)
GRIPPER_CLOSED_BELOW_M = 0.05  # as `predimem datagen` counts it for this suite


@dataclass(frozen=True, eq=False)
class MikasaSource:
    """A `datagen.imports.source.Source`. Use `mikasa_source` to make one. datasets: by id of the suite."""

    datasets: Mapping[str, LeRobotDataset | RldsDataset]
    given: str | SpanTable

    benchmark: ClassVar[str] = "mikasa"

    def jobs(self) -> list[Job]:
        first = DEMONSTRATION_SEEDS.start
        return [Job(task, first + number) for task, one in self.datasets.items() for number in range(_episodes(one))]

    def read(self, job: Job) -> SourceEpisode:
        dataset, number = self.datasets[job.task], job.seed - DEMONSTRATION_SEEDS.start
        read = _of_lerobot if isinstance(dataset, LeRobotDataset) else _of_rlds
        episode = read(dataset, number)  # type: ignore[arg-type]
        steps = len(episode.state)
        if isinstance(self.given, SpanTable):
            subtasks = self.given.of(job.task, number, steps)
        else:
            subtasks = spans.whole(episode.instruction, steps)
        keyframes = extract_keyframes(
            episode.state[:, POSITION],
            episode.state[:, OPENING],
            CONTROL_HZ,
            KeyframeConfig(gripper_closed_below_m=GRIPPER_CLOSED_BELOW_M),
        )
        return SourceEpisode(
            name=episode.name,
            instruction=episode.instruction,
            control_hz=CONTROL_HZ,
            state=episode.state,
            actions=episode.actions,
            images=episode.images,
            subtasks=subtasks,
            keyframes=keyframes,
            success=True,  # the suite's collectors keep no others
            metadata={"released": episode.released, STATE_KEY: list(MIKASA), ACTION_KEY: list(DELTA_POSE)},
        )


@dataclass(frozen=True, eq=False)
class _Read:
    """What both formats hold of an episode."""

    name: str
    instruction: str
    state: np.ndarray
    actions: np.ndarray
    images: Iterator[Mapping[str, np.ndarray]]
    released: Mapping[str, object]


def mikasa_source(root: str | Path, known: Sequence[str], given: str | SpanTable = INSTRUCTION) -> MikasaSource:
    """All data sets of the suite below the folder `root`. known: the ids of its tasks.

    Raises EpisodeError and ValueError for a folder without data sets, for one that no task of the suite is named by,
    and for a task that is there twice.
    """
    root = Path(root)
    opened: dict[str, LeRobotDataset | RldsDataset] = {}
    folders = {path.parents[1]: open_lerobot for path in sorted(root.rglob("meta/info.json"))}
    folders |= {path.parent: open_rlds for path in sorted(root.rglob("dataset_info.json"))}
    if not folders:
        raise EpisodeError(
            f"no data sets below {root}: expected folders of MIKASA-Robo-VLA's releases, such as "
            "remember_color_3_vla_v0 with meta/info.json (LeRobot) or 1.0.0/dataset_info.json (RLDS)"
        )
    for folder, open_it in folders.items():
        task = task_of(folder, known)
        if task in opened:
            raise ValueError(f"{folder} and {opened[task].root} are both of {task}: import one of them by itself")
        opened[task] = open_it(folder)
    for task, dataset in opened.items():
        if isinstance(dataset, LeRobotDataset):
            _check_lerobot(dataset, task)
    if isinstance(given, SpanTable):
        if len(opened) > 1 and any(not task for task, _ in given.spans):
            raise ValueError(
                f"{given.path}: for {len(opened)} data sets it needs a column `task` with {min(opened)}, ..."
            )
        episodes = [(task, number) for task, one in opened.items() for number in range(_episodes(one))]
        given.check(episodes)
    return MikasaSource(dict(sorted(opened.items())), given)


def task_of(folder: Path, known: Sequence[str]) -> str:
    """The id of the suite by whose name a folder, or one of the two above it, is called."""
    by_name = {plain(task): task for task in known}
    for part in list(reversed(folder.resolve().parts))[:3]:
        if plain(part) in by_name:
            return by_name[plain(part)]
    raise ValueError(
        f"{folder} is not called as a task of MIKASA-Robo-VLA: give it the name that it has in the release, such as "
        "remember_color_3_vla_v0"
    )


def plain(name: str) -> str:
    """An id, or the name of its data set, without what the two spell differently: "remembercolor3vlav0"."""
    return "".join(letter for letter in name.lower() if letter.isalnum())


def _episodes(dataset: LeRobotDataset | RldsDataset) -> int:
    return len(dataset.rows) if isinstance(dataset, LeRobotDataset) else len(dataset)


def _check_lerobot(dataset: LeRobotDataset, task: str) -> None:
    expected = {**dict.fromkeys(LEROBOT.values()), "observation.state": [DIM], "action": [len(DELTA_POSE)]}
    for feature, shape in expected.items():
        found = dataset.features.get(feature)
        if found is None or (shape is not None and list(found["shape"]) != shape):
            there = ", ".join(f"{name} {list(one['shape'])}" for name, one in dataset.features.items())
            raise EpisodeError(f"{dataset.root}: a release of {task} has {feature} {shape or ''}; this one has {there}")


def _of_lerobot(dataset: LeRobotDataset, number: int) -> _Read:
    columns = dataset.numbers(number, ["observation.state", "action", "task_index"])
    streams = [dataset.frames(number, LEROBOT[camera]) for camera in CAMERAS]
    return _Read(
        name=f"{dataset.root}, episode {number}",
        instruction=dataset.tasks[int(columns["task_index"][0])],
        state=columns["observation.state"].astype(np.float32),
        actions=columns["action"].astype(np.float32),
        images=(dict(zip(CAMERAS, images, strict=True)) for images in zip(*streams, strict=True)),
        released={"format": "lerobot", "episode": number},
    )


def _of_rlds(dataset: RldsDataset, number: int) -> _Read:
    episode = dataset.read(number)
    streams = [episode.images(RLDS[camera]) for camera in CAMERAS]
    return _Read(
        name=episode.name,
        instruction=episode.text("steps/language_instruction"),
        state=episode.vectors("steps/observation/proprio", DIM),
        actions=episode.vectors("steps/action", len(DELTA_POSE)),
        images=(dict(zip(CAMERAS, images, strict=True)) for images in zip(*streams, strict=True)),
        released={"format": "rlds", "episode": number, "file": episode.text("episode_metadata/file_path")},
    )

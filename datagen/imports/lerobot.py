"""A LeRobotDataset of anybody's robot as episodes.

Numbers, images and rate are taken as they are. Subtasks and keyframes are the data set's where it has some.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from datagen.export.dimensions import ACTION_KEY, STATE_KEY
from datagen.imports import subtasks as spans
from datagen.imports.arms import Arm, keyframes_of_motion
from datagen.imports.lerobot_dataset import LeRobotDataset, open_lerobot
from datagen.imports.lerobot_subtasks import has_subtasks, own_subtasks, subtask_columns
from datagen.imports.source import SourceEpisode
from datagen.imports.subtasks import COLUMNS, INSTRUCTION, SpanTable
from datagen.imports.videos import scaled
from datagen.keyframes import KeyframeConfig
from predimem.core.episodes import SubtaskSpan
from predimem.core.frames import EpisodeError
from predimem.core.seeds import DEMONSTRATION_SEEDS, check_training_seeds
from predimem.jobs.tasks import Job

STATE, ACTION, KEYFRAME = "observation.state", "action", "is_keyframe"


@dataclass(frozen=True, eq=False)
class LeRobotSource:
    """A `datagen.imports.source.Source`. Use `lerobot_source` to make one.

    given: "columns", "instruction" or a table: where subtasks come from.
    arms: whose motion gives the keyframes, by Eq. 1 to 3; without, the data set's own, or each subtask's last step.
    """

    dataset: LeRobotDataset
    given: str | SpanTable
    numbers: Mapping[Job, int]
    cameras: Mapping[str, str]
    max_px: int | None
    arms: Sequence[Arm]
    keyframes: KeyframeConfig

    benchmark: ClassVar[str] = "lerobot"

    def jobs(self) -> list[Job]:
        return list(self.numbers)

    def read(self, job: Job) -> SourceEpisode:
        dataset, number = self.dataset, self.numbers[job]
        name = f"{dataset.root}, episode {number}"
        marked = [KEYFRAME] if KEYFRAME in dataset.features else []
        columns = dataset.numbers(number, [STATE, ACTION, "task_index", *subtask_columns(dataset), *marked])
        instruction = self._instruction(columns["task_index"], name)
        steps = len(columns["task_index"])
        if isinstance(self.given, SpanTable):
            subtasks = self.given.of(job.task, number, steps)
        elif self.given == INSTRUCTION:
            subtasks = spans.whole(instruction, steps)
        else:
            subtasks = own_subtasks(dataset, number, columns, steps, name)
        row = dataset.rows[number]
        names = {key: dataset.names(feature) for key, feature in ((STATE_KEY, STATE), (ACTION_KEY, ACTION))}
        source = {"dataset": dataset.root.name, "episode": number, "robot_type": dataset.info.get("robot_type")}
        return SourceEpisode(
            name=name,
            instruction=instruction,
            control_hz=dataset.fps,
            state=columns[STATE].astype(np.float32),
            actions=columns[ACTION].astype(np.float32),
            images=self._images(number),
            subtasks=subtasks,
            keyframes=self._keyframes(columns, subtasks),
            success=bool(row.get("success", True)),
            metadata={"lerobot": source, **{key: value for key, value in names.items() if value is not None}},
        )

    def _instruction(self, task_index: np.ndarray, name: str) -> str:
        indices = np.unique(task_index).tolist()
        if len(indices) != 1 or indices[0] not in self.dataset.tasks:
            told = [self.dataset.tasks.get(index) for index in indices]
            raise EpisodeError(f"{name}: expected one task for all of its steps, got {told}")
        return self.dataset.tasks[indices[0]]

    def _keyframes(self, columns: Mapping[str, Any], subtasks: Sequence[SubtaskSpan]) -> Sequence[int]:
        if self.arms:
            return keyframes_of_motion(columns[STATE], self.arms, self.dataset.fps, self.keyframes)
        if KEYFRAME in columns:
            return np.flatnonzero(columns[KEYFRAME]).tolist()
        return [span.end - 1 for span in subtasks[:-1]]

    def _images(self, number: int) -> Iterator[Mapping[str, np.ndarray]]:
        streams = [self.dataset.frames(number, feature) for feature in self.cameras.values()]
        for images in zip(*streams, strict=True):
            yield {name: scaled(image, self.max_px) for name, image in zip(self.cameras, images, strict=True)}


def lerobot_source(
    root: str | Path,
    given: str | SpanTable = COLUMNS,
    cameras: Sequence[str] = (),
    max_px: int | None = None,
    task: str | None = None,
    first_seed: int = DEMONSTRATION_SEEDS.start,
    arms: Sequence[Arm] = (),
    keyframes: KeyframeConfig | None = None,
) -> LeRobotSource:
    """Opens the data set and checks what can be checked before an episode is read.

    cameras: their names, without "observation.images."; empty: all. task: what the episodes' task is called, and their
    numbers go up from `first_seed`; without `task`, exports of ours keep both, and others are called as their folder.
    Raises EpisodeError and ValueError that say what is missing and what can be chosen.
    """
    dataset = open_lerobot(root)
    _check_features(dataset, arms)
    if given == COLUMNS and not has_subtasks(dataset):
        raise ValueError(f"{root} has no subtasks in its columns: {spans.CHOICES}")
    numbers = _numbers(dataset, task, first_seed)
    if isinstance(given, SpanTable):
        given.check([(job.task, number) for job, number in numbers.items()])
    return LeRobotSource(
        dataset, given, numbers, _chosen(dataset, cameras), max_px, tuple(arms), keyframes or KeyframeConfig()
    )


def _check_features(dataset: LeRobotDataset, arms: Sequence[Arm]) -> None:
    for feature in (STATE, ACTION):
        if feature not in dataset.features or len(dataset.features[feature]["shape"]) != 1:
            there = ", ".join(dataset.features)
            raise EpisodeError(f"{dataset.root}: expected a vector {feature!r}; its features are {there}")
    if not dataset.cameras:
        raise EpisodeError(f"{dataset.root} has no images, and PrediMem remembers nothing else")
    dim = dataset.features[STATE]["shape"][0]
    outside = [index for arm in arms for index in (*arm.tcp, arm.gripper) if not 0 <= index < dim]
    if outside:
        raise ValueError(f"the state has {dim} numbers, 0 to {dim - 1}: there is no {outside[0]}")


def _chosen(dataset: LeRobotDataset, cameras: Sequence[str]) -> dict[str, str]:
    known = dataset.cameras
    wrong = [name for name in cameras if name not in known]
    if wrong:
        raise ValueError(f"{dataset.root} has no camera {wrong[0]!r}; it has {', '.join(known)}")
    return {name: known[name] for name in cameras or known}


def _numbers(dataset: LeRobotDataset, task: str | None, first_seed: int) -> dict[Job, int]:
    """Task and number of our episode -> its number in the data set."""
    rows = dataset.rows
    if task is None and all("task_name" in row and "seed" in row for row in rows.values()):
        numbers = {Job(row["task_name"], row["seed"]): number for number, row in rows.items()}
        if len(numbers) < len(rows):
            raise EpisodeError(
                f"{dataset.root}: some of its {len(rows)} episodes have the same task_name and seed, as copies of one "
                "episode have: give --task NAME, so that they are numbered anew"
            )
        return numbers
    last = first_seed + max(rows, default=0)
    check_training_seeds(range(first_seed, last + 1), f"the {len(rows)} episodes of {dataset.root}")
    return {Job(task or dataset.root.resolve().name, first_seed + number): number for number in rows}

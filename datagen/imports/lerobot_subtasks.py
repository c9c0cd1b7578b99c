"""The subtasks that a LeRobotDataset may hold, in one of four ways.

`<kind>_names` and `<kind>_start_frames` of an episode (LeRobot's annotation tool, our exports); `subtask_index` of a
step with `meta/subtasks.parquet`; the words themselves in `subtask`; the language columns of LeRobot 0.6.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from datagen.imports import subtasks as spans
from datagen.imports.lerobot_dataset import LeRobotDataset
from predimem.core.episodes import SubtaskSpan
from predimem.core.frames import EpisodeError

INDEX, WORDS, LANGUAGE = "subtask_index", "subtask", "language_persistent"
ANNOTATED = ("dense_subtask", "subtask", "sparse_subtask")
ONE_STAGE = ["task"]  # what the annotation tool writes for an episode without stages


def subtask_columns(dataset: LeRobotDataset) -> list[str]:
    """The columns of steps that may name subtasks."""
    return [name for name in (INDEX, WORDS, LANGUAGE) if name in dataset.features]


def has_subtasks(dataset: LeRobotDataset) -> bool:
    columns = set(subtask_columns(dataset)) - (set() if dataset.subtasks else {INDEX})
    row = next(iter(dataset.rows.values()), {})
    return bool(columns) or any(row.get(f"{kind}_names") not in (None, [], ONE_STAGE) for kind in ANNOTATED)


def own_subtasks(
    dataset: LeRobotDataset, number: int, columns: Mapping[str, Any], steps: int, name: str
) -> tuple[SubtaskSpan, ...]:
    """columns: those of `subtask_columns`. name: begins the message of the EpisodeError that is raised where a step has
    no subtask.
    """
    row = dataset.rows[number]
    for kind in ANNOTATED:
        labels, starts = row.get(f"{kind}_names"), row.get(f"{kind}_start_frames")
        if labels and starts and labels != ONE_STAGE:
            return spans.from_starts(labels, starts, steps, name)
    if INDEX in columns and dataset.subtasks:
        found = [dataset.subtasks.get(int(index), "") for index in columns[INDEX]]
    elif WORDS in columns:
        found = ["" if label is None else str(label) for label in columns[WORDS]]
    elif LANGUAGE in columns:
        said = [entry for entry in columns[LANGUAGE][0] if entry["style"] == "subtask"]
        said.sort(key=lambda entry: entry["timestamp"])
        starts = [round(entry["timestamp"] * dataset.fps) for entry in said]
        return spans.from_starts([entry["content"] for entry in said], starts, steps, name)
    else:
        raise EpisodeError(f"{name} has no subtasks: {spans.CHOICES}")
    if "" in found:
        raise EpisodeError(f"{name}: step {found.index('')} has no subtask: {spans.CHOICES}")
    return spans.from_labels(found, name)

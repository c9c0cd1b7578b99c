"""What the tasks of a suite are called, and which there are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from predimem.evaluation.run.config import Suite


def check_tasks(tasks: Sequence[str]) -> None:
    """Raises ValueError for a task that mikasa does not have, naming those that it has."""
    from predimem.envs.mikasa import suite as mikasa

    for task in tasks:
        mikasa.check_task(task)


def task_names(suite: Suite, tasks: Sequence[str]) -> tuple[str, ...]:
    """The tasks' names in result files; the arena also takes ids ("4"), Gymnasium ids and task files.

    Raises ValueError for an unknown task, naming those that there are, and for a faulty file.
    """
    if suite == "mikasa":
        check_tasks(tasks)
        return tuple(tasks)
    from predimem.envs.arena.tasks import task_of

    return tuple(task_of(task).name for task in tasks)


def task_horizons(suite: Suite, tasks: Sequence[str]) -> dict[str, int]:
    """Name -> the control steps that an episode takes at most; {} for mikasa, whose tasks are all short."""
    if suite == "mikasa":
        return {}
    from predimem.envs.arena.tasks import task_of

    return {task_of(task).name: task_of(task).horizon for task in tasks}


def task_files(suite: Suite, tasks: Sequence[str]) -> dict[str, str]:
    """Name -> absolute path of those tasks of the arena that are given as a file (.py)."""
    if suite == "mikasa":
        return {}
    from predimem.envs.arena.task_file import SUFFIX
    from predimem.envs.arena.tasks import task_of

    return {task_of(task).name: str(Path(task).resolve()) for task in tasks if task.endswith(SUFFIX)}


def all_tasks(suite: Suite) -> tuple[str, ...]:
    """What is played where no task is named. Raises ValueError for mikasa: most of it needs downloads."""
    if suite == "mikasa":
        raise ValueError("mikasa: say which --tasks to play, comma-separated, such as RememberColor9-VLA-v0")
    from predimem.envs.arena.tasks import TASKS

    return tuple(task.name for task in TASKS)


def task_categories(suite: Suite, files: Mapping[str, str] | None = None) -> Mapping[str, Sequence[str]] | None:
    """Category -> its tasks, those of `files` (see `task_files`) among them; None for a suite that has none."""
    if suite == "mikasa":
        return None
    from predimem.envs.arena.task import CATEGORIES
    from predimem.envs.arena.tasks import TASKS, task_of

    tasks = (*TASKS, *(task_of(path) for path in (files or {}).values()))
    return {category: [task.name for task in tasks if task.category == category] for category in CATEGORIES}

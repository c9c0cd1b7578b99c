"""The 26 tasks of RoboMemArena, one file each: names, categories and subtask labels as released."""

from __future__ import annotations

import pkgutil
import re
from importlib import import_module
from os import PathLike

from predimem.core.own_code import SUFFIX
from predimem.core.suggestions import did_you_mean
from predimem.envs.arena.task import Task
from predimem.envs.arena.task_file import load_task

_MODULES = [module.name for module in pkgutil.iter_modules(__path__) if re.match(r"t\d", module.name)]

TASKS: tuple[Task, ...] = tuple(
    sorted((import_module(f"{__name__}.{name}").TASK for name in _MODULES), key=lambda task: task.task_id)
)


def task_of(key: int | str | PathLike[str] | Task) -> Task:
    """A task by its id (4, "4"), its name, its Gymnasium id or the path of its file (ends in .py); long tasks by name.

    A task itself is given back. Raises ValueError for an unknown one, naming all of them, and for a file
    that is faulty or takes the id or the name of one of the 26.
    """
    if isinstance(key, Task):
        return key
    if str(key).endswith(SUFFIX):
        return _task_of_file(str(key))
    if re.match(r"(predimem/Arena-)?long-", str(key)):
        from predimem.envs.arena.long.templates import long_task

        return long_task(str(key))
    for task in TASKS:
        if str(key) in (str(task.task_id), task.name, task.env_id):
            return task
    known = ", ".join(f"{task.task_id} {task.name}" for task in TASKS)
    meant = did_you_mean(key, (task.name for task in TASKS))
    raise ValueError(
        f"unknown arena task {key!r}{meant}: expected an id from 1 to {len(TASKS)}, a name, a Gymnasium id such as "
        f"{TASKS[0].env_id!r}, or the path of a task file (.py); there are: {known}"
    )


def _task_of_file(path: str) -> Task:
    task = load_task(path)
    if task.task_id <= len(TASKS):
        raise ValueError(f"{path}: task_id 1 to {len(TASKS)} are taken; choose a larger number than {task.task_id}")
    if task.name.lower() in {known.name.lower() for known in TASKS}:
        raise ValueError(f"{path}: there is a task of the name {task.name} already; choose another")
    return task

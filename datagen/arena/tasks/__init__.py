"""The 26 tasks of RoboMemArena, one file each: names, categories and subtask labels as released."""

from __future__ import annotations

from datagen.arena.task import Task
from datagen.arena.tasks import t04_butter_in_occupied_drawer, t10_pour_wine_into_mug, t20_cookies_chocolate_into_microwave

TASKS: tuple[Task, ...] = (t04_butter_in_occupied_drawer.TASK, t10_pour_wine_into_mug.TASK, t20_cookies_chocolate_into_microwave.TASK)


def task_of(key: int | str) -> Task:
    """A task by its id (4, "4"), its name or its Gymnasium id. Raises ValueError naming all of them."""
    for task in TASKS:
        if str(key) in (str(task.task_id), task.name, task.env_id):
            return task
    known = ", ".join(f"{task.task_id} {task.name}" for task in TASKS)
    raise ValueError(f"unknown arena task {key!r}; there are: {known}")

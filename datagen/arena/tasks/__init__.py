"""The 26 tasks of RoboMemArena, one file each: names, categories and subtask labels as released."""

from __future__ import annotations

from datagen.arena.task import Task
from datagen.arena.tasks import (
    t01_cookies_sauce_into_target_container,
    t02_butter_popcorn_into_target_container,
    t03_cream_pudding_into_target_container,
    t04_butter_in_occupied_drawer,
    t05_butter_in_empty_drawer,
    t06_pour_sauce_on_cookies_twice,
    t07_pour_sauce_on_frypan_twice,
    t08_pour_sauce_over_chocolate_twice,
    t09_pour_sauce_over_butter_twice,
    t10_pour_wine_into_mug_twice,
    t11_cookies_chocolate_into_drawers,
    t12_cookies_chocolate_into_middle_drawer,
    t13_cookies_butter_into_middle_drawer,
    t14_cookies_chocolate_into_drawer_respectively,
    t15_pour_milk_over_butter_twice,
    t16_pour_milk_into_mug_twice,
    t17_butter_chocolate_into_middle_drawer,
    t18_transfer_chocolate_butter,
    t19_transfer_sauce_milk_juice,
    t20_cookies_chocolate_into_microwave,
    t21_butter_chocolate_into_microwave,
    t22_pour_sauce_twice_cookies_into_microwave,
    t23_cream_popcorn_into_microwave,
    t24_cookies_popcorn_into_microwave,
    t25_transfer_butter_cream_cheese,
    t26_transfer_chocolate_pudding_cream_cheese,
)

TASKS: tuple[Task, ...] = (
    t01_cookies_sauce_into_target_container.TASK,
    t02_butter_popcorn_into_target_container.TASK,
    t03_cream_pudding_into_target_container.TASK,
    t04_butter_in_occupied_drawer.TASK,
    t05_butter_in_empty_drawer.TASK,
    t06_pour_sauce_on_cookies_twice.TASK,
    t07_pour_sauce_on_frypan_twice.TASK,
    t08_pour_sauce_over_chocolate_twice.TASK,
    t09_pour_sauce_over_butter_twice.TASK,
    t10_pour_wine_into_mug_twice.TASK,
    t11_cookies_chocolate_into_drawers.TASK,
    t12_cookies_chocolate_into_middle_drawer.TASK,
    t13_cookies_butter_into_middle_drawer.TASK,
    t14_cookies_chocolate_into_drawer_respectively.TASK,
    t15_pour_milk_over_butter_twice.TASK,
    t16_pour_milk_into_mug_twice.TASK,
    t17_butter_chocolate_into_middle_drawer.TASK,
    t18_transfer_chocolate_butter.TASK,
    t19_transfer_sauce_milk_juice.TASK,
    t20_cookies_chocolate_into_microwave.TASK,
    t21_butter_chocolate_into_microwave.TASK,
    t22_pour_sauce_twice_cookies_into_microwave.TASK,
    t23_cream_popcorn_into_microwave.TASK,
    t24_cookies_popcorn_into_microwave.TASK,
    t25_transfer_butter_cream_cheese.TASK,
    t26_transfer_chocolate_pudding_cream_cheese.TASK,
)


def task_of(key: int | str) -> Task:
    """A task by its id (4, "4"), its name or its Gymnasium id. Raises ValueError naming all of them."""
    for task in TASKS:
        if str(key) in (str(task.task_id), task.name, task.env_id):
            return task
    known = ", ".join(f"{task.task_id} {task.name}" for task in TASKS)
    raise ValueError(
        f"unknown arena task {key!r}: expected an id from 1 to {len(TASKS)}, a name, or a Gymnasium id such as "
        f"{TASKS[0].env_id!r}; there are: {known}"
    )

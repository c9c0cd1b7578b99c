"""`positions`: things start where no demonstration has them, and within reach.

Objects on the table start 2 to 7 cm outside the rectangle that training draws from. Containers (baskets, plates, pan,
mugs, shelves, drainer) are moved together, 5 cm towards the robot or away from it, with what is in them; training moves
each by 2 cm at most. Cabinet and microwave stay, and what lies in the drawers.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from predimem.envs.arena import fixtures as f
from predimem.envs.arena.layout import Layout, Pose
from predimem.envs.arena.task import Task
from predimem.envs.arena.unseen.room import free_points
from predimem.envs.arena.unseen.setting import Setting, rounded

OUTSIDE_M = (0.02, 0.07)
CONTAINERS_MOVED_M = 0.05


def apply(setting: Setting, task: Task, rng: np.random.Generator) -> Setting:
    layout, start = setting.layout, task.variants[setting.layout.variant].start
    shift = np.array([CONTAINERS_MOVED_M if rng.random() < 0.5 else -CONTAINERS_MOVED_M, 0.0, 0.0])
    fixtures = {n: _moved(pose, shift) if n in task.fixtures else pose for n, pose in layout.fixtures.items()}
    mats = {p: _moved(pose, shift) if _goes_along(p, task) else pose for p, pose in layout.mats.items()}
    loose = [name for name in task.objects if name not in start]
    points = free_points(len(loose), OUTSIDE_M, f.SPAWN_SPACING_M, fixtures, [], rng)
    objects = dict(layout.objects)
    for name, point in zip(loose, points, strict=True):
        position, yaw = objects[name]
        objects[name] = (np.array([*point, position[2]]), yaw)
    for name, place in start.items():
        if _goes_along(place, task):
            objects[name] = _moved(objects[name], shift)
    moved = Layout(layout.variant, fixtures, mats, objects, layout.qpos)
    changed: dict[str, Any] = {**setting.changed, "objects_m": {name: rounded(objects[name][0][:2]) for name in loose}}
    if task.fixtures:
        changed["containers_moved_m"] = rounded(shift)
    return replace(setting, layout=moved, changed=changed)


def _goes_along(place: str, task: Task) -> bool:
    return f.PLACES[place].frame in task.fixtures


def _moved(pose: Pose, shift_m: np.ndarray) -> Pose:
    position, yaw = pose
    return position + shift_m, yaw

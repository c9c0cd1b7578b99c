"""`distractors`: two more objects stand on the table, of kinds that no task names and no demonstration shows.

They stand 5 to 12 cm outside the area that objects start in, out of the way of drawers and of the microwave's door.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from predimem.envs.arena.objects import DISTRACTORS
from predimem.envs.arena.task import Task
from predimem.envs.arena.unseen.room import free_points
from predimem.envs.arena.unseen.setting import Setting, rounded

COUNT = 2
OUTSIDE_M = (0.05, 0.12)
SPACING_M = 0.12  # the gripper comes down on an object of the task without touching one of these


def apply(setting: Setting, task: Task, rng: np.random.Generator) -> Setting:
    layout = setting.layout
    taken = [position[:2] for position, _ in layout.objects.values()]
    points = free_points(COUNT, OUTSIDE_M, SPACING_M, layout.fixtures, taken, rng)
    names = [str(name) for name in rng.choice(list(DISTRACTORS), COUNT, replace=False)]
    poses = {
        name: (np.array([*point, DISTRACTORS[name].half_height_m + 0.001]), float(rng.uniform(-math.pi, math.pi)))
        for name, point in zip(names, points, strict=True)
    }
    stand = {name: rounded(position[:2]) for name, (position, _) in poses.items()}
    return replace(setting, distractors=poses, changed={**setting.changed, "distractors_m": stand})

"""`textures`: table, walls, floor, cabinet, shelves and baskets get painted patterns in place of stone, wood and so on.

Objects keep their labels, and plain surfaces their colours.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from predimem.envs.arena.task import Task
from predimem.envs.arena.unseen.setting import ROOM, Setting, Style

SETS = 12  # of patterns; few, since the surfaces of each are kept in memory


def apply(setting: Setting, task: Task, rng: np.random.Generator) -> Setting:
    pattern = 1 + int(rng.integers(SETS))
    styles = {name: Style(pattern=pattern) for name in (ROOM, "cabinet", *task.fixtures)}
    return replace(setting, styles=styles, changed={**setting.changed, "pattern": pattern})

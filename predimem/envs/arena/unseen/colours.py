"""`colours`: each object and piece of furniture turns its hues by an angle of its own; greys are tinted.

What instructions name by its colour keeps it: the red mat, the red and the white mug.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from predimem.envs.arena import fixtures as f
from predimem.envs.arena.task import Task
from predimem.envs.arena.unseen.setting import ROOM, Setting, Style

HUES_DEG = tuple(range(60, 301, 30))  # few, since the surfaces of each are kept in memory


def apply(setting: Setting, task: Task, rng: np.random.Generator) -> Setting:
    fixtures = (name for name in (*f.KITCHEN, *task.fixtures) if f.FIXTURES[name].kind != "mug")
    hues = {name: int(rng.choice(HUES_DEG)) for name in (ROOM, *fixtures, *task.objects)}
    for left in [name for name in hues if name.endswith("_left")]:  # twins are told apart by where they stand
        hues[left.replace("_left", "_right")] = hues[left]
    styles = {name: Style(hue_deg=hue) for name, hue in hues.items()}
    return replace(setting, styles=styles, changed={**setting.changed, "hues_deg": hues})

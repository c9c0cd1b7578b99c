"""`camera`: the camera that sees the whole scene stands 3 to 6 cm elsewhere and is turned by 1 to 3 degrees.

The camera at the wrist stays, since it is screwed to the hand.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from predimem.envs.arena.task import Task
from predimem.envs.arena.unseen.setting import Setting, View, rounded

MOVED_M = (0.03, 0.06)
TURNED_DEG = (1.0, 3.0)


def apply(setting: Setting, task: Task, rng: np.random.Generator) -> Setting:
    eye, ahead = np.array(setting.view.eye_m), np.subtract(setting.view.target_m, setting.view.eye_m)
    shift = _direction(rng) * rng.uniform(*MOVED_M)
    turned_deg = float(rng.uniform(*TURNED_DEG))
    aside = np.cross(ahead, _direction(rng))  # at right angles to where it looks
    aside *= np.linalg.norm(ahead) / np.linalg.norm(aside)
    angle = math.radians(turned_deg)
    target = eye + shift + math.cos(angle) * ahead + math.sin(angle) * aside
    changed = {
        **setting.changed, "camera_moved_m": rounded(shift), "camera_turned_deg": round(turned_deg, 2)
    }  # fmt: skip
    return replace(setting, view=View(_point(eye + shift), _point(target)), changed=changed)


def _direction(rng: np.random.Generator) -> np.ndarray:
    """[3]: of length 1, every direction as likely as any other."""
    drawn = rng.normal(size=3)
    return drawn / np.linalg.norm(drawn)


def _point(values: np.ndarray) -> tuple[float, float, float]:
    x, y, z = map(float, values)
    return x, y, z

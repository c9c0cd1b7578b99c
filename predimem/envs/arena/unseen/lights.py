"""`lights`: 40 % darker to 30 % brighter, warmer or colder, and from another side."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from predimem.envs.arena.objects import RGB
from predimem.envs.arena.task import Task
from predimem.envs.arena.unseen.setting import Point, Setting

BRIGHTNESS = (0.6, 1.3)
WARMTH = (0.1, 0.25)  # red gains so much, and blue loses it; or the other way round
TURNED_DEG = (40.0, 120.0)


def apply(setting: Setting, task: Task, rng: np.random.Generator) -> Setting:
    brightness = float(rng.uniform(*BRIGHTNESS))
    warmth = float(rng.uniform(*WARMTH)) * _sign(rng)
    turned_deg = float(rng.uniform(*TURNED_DEG)) * _sign(rng)
    before = setting.lamps

    def lit(colour: RGB) -> RGB:
        red, green, blue = (brightness * channel for channel in colour)
        return red * (1 + warmth), green, blue * (1 - warmth)

    lamps = replace(
        before,
        ambient=lit(before.ambient),
        colour=lit(before.colour),
        fill_colour=lit(before.fill_colour),
        direction=_turned(before.direction, turned_deg),
        fill_direction=_turned(before.fill_direction, turned_deg),
    )
    changed = {
        **setting.changed,
        "brightness": round(brightness, 3),
        "warmth": round(warmth, 3),
        "light_turned_deg": round(turned_deg, 1),
    }
    return replace(setting, lamps=lamps, changed=changed)


def _sign(rng: np.random.Generator) -> int:
    return 1 if rng.random() < 0.5 else -1


def _turned(direction: Point, angle_deg: float) -> Point:
    """About the vertical."""
    x, y, z = direction
    cos, sin = math.cos(math.radians(angle_deg)), math.sin(math.radians(angle_deg))
    return cos * x - sin * y, sin * x + cos * y, z

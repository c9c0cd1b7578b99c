"""All that makes up the scene of one episode: where things stand, how they look, who looks on, what is said.

The defaults are the arena as it is for training, and `predimem.envs.arena.scene` builds whatever is asked for here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from predimem.envs.arena.layout import Layout, Pose, draw_layout
from predimem.envs.arena.objects import RGB
from predimem.envs.arena.task import Task

Point = tuple[float, float, float]
ROOM = "room"  # what the table, the walls and the floor are called in `Setting.styles`


@dataclass(frozen=True)
class View:
    """Where the camera `agentview` stands and which point it looks at, m.

    From over the robot's right side one sees into the drawers and into the microwave, and the arm hides little.
    """

    eye_m: Point = (-0.36, -0.80, 1.18)
    target_m: Point = (-0.065, -0.05, 0.05)


@dataclass(frozen=True)
class Lamps:
    """The light: a lamp over the robot's left shoulder, which alone casts shadows, and a weak one behind the camera.

    ambient, colour, fill_colour: linear RGB, 1 is as bright as a white surface gets without other light.
    direction, fill_direction: where the light goes.
    """

    ambient: RGB = (0.30, 0.30, 0.31)
    direction: Point = (0.45, -0.25, -1.0)
    colour: RGB = (1.75, 1.70, 1.60)
    fill_direction: Point = (0.7, 0.6, -0.4)
    fill_colour: RGB = (0.75, 0.77, 0.80)


@dataclass(frozen=True)
class Style:
    """How the surfaces of one thing differ from those that it is built with.

    hue_deg: how far every colour is turned about the wheel of hues; greys are tinted. 0: the colours stay.
    pattern: which set of painted patterns replaces wood, stone, wicker, tiles and floor, from 1. 0: they stay.
    """

    hue_deg: int = 0
    pattern: int = 0


AS_BUILT = Style()


@dataclass(frozen=True, eq=False)
class Setting:
    """What one episode looks like and is told, where it may differ from the arena of the training.

    instruction: what the robot is told; empty: what its variant of the task says.

    styles: thing (an object, a fixture or `ROOM`) -> its style; whatever is not named is as built.
    distractors: name (of `objects.DISTRACTORS`) -> where it stands.
    changed: for the episode's record, as JSON data, what differs from the arena of the training.
    """

    layout: Layout
    instruction: str = ""
    view: View = field(default_factory=View)
    lamps: Lamps = field(default_factory=Lamps)
    styles: Mapping[str, Style] = field(default_factory=dict)
    distractors: Mapping[str, Pose] = field(default_factory=dict)
    changed: Mapping[str, Any] = field(default_factory=dict)


def as_trained(task: Task, seed: int) -> Setting:
    """The arena as demonstrations show it."""
    return Setting(draw_layout(task, seed))


def rounded(values: Any) -> list[float]:
    """Numbers for a record: to a tenth of a millimetre."""
    return [round(float(value), 4) for value in np.ravel(values)]

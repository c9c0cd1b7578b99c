"""How the hand is held while it picks something up: upright, with the fingers along the sides of what they take.

A hand that pushes against the table or a cube tilts a little, and a command that only moves it leaves it so. A cube
that was pushed may lie askew: fingers that close across its corners stop there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from predimem.envs.mikasa.families.scene import axes

GAIN = 5.0  # action units (1 = 0.1 rad) per rad
UPRIGHT_M = 0.76  # from the robot's base; the arm reaches farther with a hand that leans outwards, ...
LEANING_M = 0.1  # ... by so much with the most
MOST_LEAN = 0.5  # the sine of the angle
QUARTER = np.pi / 2


def turn_to_rad(base: Any, thing: Any = None) -> float:
    """By how much the fingers have to turn about the vertical to lie along a side of a cube, or along the world's axes
    where no cube is given: in [-pi/4, pi/4], counter-clockwise as seen from above."""
    along = 0.0 if thing is None else _angle(axes(thing)[:2, 0])
    return (along - _angle(axes(base.agent.tcp)[:2, 1]) + QUARTER / 2) % QUARTER - QUARTER / 2


def upright(action: np.ndarray, state: Mapping[str, Any], turn_rad: float = 0.0) -> np.ndarray:
    """The same action, which also turns the hand towards pointing down, outwards where the arm is stretched, and about
    the vertical.

    action: float32 [7]; its rotation is replaced. state: with `pointing`, where the fingers point. turn_rad: as
    `turn_to_rad` gives it. The suite's controller turns the hand the other way about each axis of the world.
    """
    outwards = (state["tcp_m"] - state["base_m"])[:2]
    away_m = float(np.linalg.norm(outwards))
    lean = MOST_LEAN * np.clip((away_m - UPRIGHT_M) / LEANING_M, 0.0, 1.0) * outwards / away_m
    wrong = state["pointing"][:2] - lean
    turn = GAIN * np.array([wrong[1], -wrong[0], -turn_rad])
    turned = action.copy()
    turned[3:6] = turn / max(1.0, float(np.linalg.norm(turn)))
    return turned


def _angle(direction: np.ndarray) -> float:
    return float(np.arctan2(direction[1], direction[0]))

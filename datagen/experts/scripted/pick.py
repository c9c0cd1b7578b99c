"""Picking an object up, from above."""

from __future__ import annotations

import math

import numpy as np

from datagen.experts.scripted.scene import Scene
from predimem.envs.arena.robot.arm import CLOSED, OPEN, Arm, Motion
from predimem.envs.arena.robot.rotations import FLIP, UP, top_down

TRAVEL_M = 0.25  # the empty gripper passes over objects at this height of the TCP
SLOW_M, SLOW_M_S = 0.05, 0.15  # the last part of the way down
LIFT_M = 0.18
PALM_M = 0.037  # the palm is this far above the TCP
GRASPED_M = 0.06  # a held object's centre is this close to the TCP
EMPTY_GAP_M = 0.01  # fingers that closed further than this hold nothing


def pick(arm: Arm, scene: Scene, object: str) -> Motion:
    """Grasp an object as the scene says and lift it by `LIFT_M`; ends there, or, without it, open at `TRAVEL_M`.

    Nothing, where the scene knows no grasp.
    """
    grasp = scene.grasp(arm, object)
    if grasp is None:
        return
    position, rotation = grasp
    before = position - SLOW_M * rotation[:, 2]
    yield from arm.grip(OPEN, steps=2)
    yield from arm.rise(max(TRAVEL_M, before[2]))
    yield from arm.travel(np.array([*before[:2], arm.position[2]]), rotation)
    yield from arm.move(before, settle=0)
    yield from arm.move(position, speed_m_s=SLOW_M_S)
    yield from arm.grip(CLOSED)
    yield from arm.rise(position[2] + LIFT_M, settle=2)
    if not holds(arm, scene, object):
        yield from arm.grip(OPEN)


def holds(arm: Arm, scene: Scene, object: str) -> bool:
    """Whether the object is between the closed fingers."""
    near = np.linalg.norm(scene.position_m(object) - arm.true_position) <= GRASPED_M
    return bool(near) and arm.gripper == CLOSED and arm.finger_gap_m > EMPTY_GAP_M


def down(arm: Arm, position: np.ndarray) -> Motion:
    """Straight down to a position, the last `SLOW_M` of it slowly."""
    yield from arm.move(position + SLOW_M * UP, settle=0)
    yield from arm.move(position, speed_m_s=SLOW_M_S)


def half_height_m(scene: Scene, object: str) -> float:
    """From an object's centre to its lowest point, however it lies."""
    extent, vertical = scene.extent(object), np.abs(scene.rotation(object)[2])
    if extent.round:
        return extent.half_m[0] * math.sqrt(max(0.0, 1.0 - vertical[2] ** 2)) + extent.half_m[2] * vertical[2]
    return float(vertical @ extent.half_m)


def easiest(arm: Arm, position: np.ndarray, closing_yaw_rad: float) -> np.ndarray:
    """[3, 3]: of the two ways to close along a direction, the one that turns the wrist less."""
    rotation = top_down(closing_yaw_rad)
    return min((rotation, rotation @ FLIP), key=lambda turned: wrist_rad(arm, position, turned))


def wrist_rad(arm: Arm, position: np.ndarray, rotation: np.ndarray) -> float:
    """How far the last joint is turned away from its rest at a pose; infinite out of reach."""
    q, reached = arm.kinematics.solve(position, rotation)
    return abs(float(q[6] - arm.kinematics.rest_rad[6])) if reached else math.inf

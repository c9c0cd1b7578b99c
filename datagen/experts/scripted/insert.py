"""Putting what the gripper holds into an open drawer or the open microwave."""

from __future__ import annotations

import math

import numpy as np

from datagen.experts.scripted.drawer import TRANSIT_M, nearest_forward
from datagen.experts.scripted.pick import half_height_m, holds
from datagen.experts.scripted.place import set_down, slot_m
from datagen.experts.scripted.scene import Scene
from predimem.envs.arena.fixtures import PLACES
from predimem.envs.arena.robot.arm import OPEN, Arm, Motion

OVER_DRAWER_M = 0.13  # above a drawer's floor: what is carried passes over its front at this height
NEIGHBOUR_M = 0.15  # things nearer than this are under the palm
PALM_ROOM_M = 0.006

PITCH_RAD = 0.35  # below the horizon, in the microwave: steeper, the gripper does not fit in
BEFORE_M = 0.14  # the way in begins this far in front of the face
INSERT_M_S, LOWER_M_S, LEAVE_M_S = 0.20, 0.10, 0.20
RELEASE_M = 0.006  # above the floor
CARRY_M = 0.020  # and this much higher on the way in and out
LOWEST_M = 0.030  # of the TCP above the floor: the palm needs it


def place_in_drawer(arm: Arm, scene: Scene, object: str, place: str) -> Motion:
    """Set the held object down in a free slot of an open drawer, or of a half of it; then home.

    Nothing, if it is not held.
    """
    if not holds(arm, scene, object):
        return
    point = slot_m(scene, object, place)
    lowest = scene.position_m(object)[2] - half_height_m(scene, object)
    yield from arm.rise(arm.position[2] + point[2] + OVER_DRAWER_M - lowest)
    tops = [_top_m(scene, o) for o in scene.objects if o != object and _near(scene, o, point)]
    yield from set_down(arm, scene, object, point, math.pi / 2, max(tops, default=0.0) + PALM_ROOM_M)
    yield from arm.go_home(arm.position[2])


def place_in_microwave(arm: Arm, scene: Scene, object: str, place: str) -> Motion:
    """Put the held object onto a free slot in the open microwave, or in a half of it; then home.

    The gripper turns until it points almost level, so the object comes to stand on one of its sides.
    Nothing, if it is not held.
    """
    if not holds(arm, scene, object):
        return
    rotation = nearest_forward(arm, PITCH_RAD)
    in_gripper = arm.true_rotation.T @ (scene.position_m(object) - arm.true_position)
    turned = rotation @ arm.true_rotation.T @ scene.rotation(object)
    height = float(np.abs(turned[2]) @ scene.extent(object).half_m)
    floor = slot_m(scene, object, place)
    target = floor + np.array([0.0, 0.0, height + RELEASE_M]) - rotation @ in_gripper
    target[2] = max(target[2], floor[2] + LOWEST_M)
    inside = target + np.array([0.0, 0.0, CARRY_M])
    before = np.array([scene.position_m(PLACES[place].frame)[0] - BEFORE_M, *inside[1:]])
    yield from arm.rise(TRANSIT_M)
    yield from arm.travel(np.array([*before[:2], arm.position[2]]), rotation)
    yield from arm.move(before)
    yield from arm.move(inside, speed_m_s=INSERT_M_S)
    yield from arm.move(target, speed_m_s=LOWER_M_S)
    yield from arm.grip(OPEN)
    yield from arm.move(before, speed_m_s=LEAVE_M_S, settle=0)
    yield from arm.go_home()


def _near(scene: Scene, object: str, point: np.ndarray) -> bool:
    return bool(np.linalg.norm(scene.position_m(object) - point) < NEIGHBOUR_M)


def _top_m(scene: Scene, object: str) -> float:
    return float(scene.position_m(object)[2]) + half_height_m(scene, object)

"""Putting down what the gripper holds: on the table, into baskets, on plates and shelves, into pan and drainer."""

from __future__ import annotations

import math

import numpy as np

from datagen.experts.scripted.pick import PALM_M, TRAVEL_M, down, easiest, half_height_m, holds
from datagen.experts.scripted.scene import Scene, place_point_m
from predimem.envs.arena.fixtures import BASKET_HEIGHT_M, FIXTURES, PAN_HEIGHT_M, PLACES, SPAWN_HIGH_M, SPAWN_LOW_M
from predimem.envs.arena.robot.arm import OPEN, Arm, Motion
from predimem.envs.arena.robot.rotations import UP

CARRY_M = 0.18  # the lowest point of what is carried is above every basket, shelf and bottle
RELEASE_M = 0.006  # above the floor of the place
SLOT_FREE_M = 0.06  # a slot is free when no object's centre is nearer
RETREAT_SLOW_M, RETREAT_M_S = 0.06, 0.15  # the first part of the way up, lest the fingers drag the object along
RIM_M = {"basket": BASKET_HEIGHT_M, "frying_pan": PAN_HEIGHT_M}  # what the palm must stay above, over the table
RIM_ROOM_M = 0.006
TABLE_GRID_M = 0.02
TABLE_ROOM_M = 0.14  # more than this between a thing's centre and the others is not worth a longer way


def place(arm: Arm, scene: Scene, object: str, place: str) -> Motion:
    """Set down the object in the gripper in a free slot of a place; ends above it, open. Nothing, if it is not held.

    Not for drawers and the microwave: see `insert`.
    """
    if not holds(arm, scene, object):
        return
    point = table_point_m(scene, object) if place == "table" else slot_m(scene, object, place)
    frame = PLACES[place].frame
    across = scene.rotation(frame)[:, 1] if frame in FIXTURES else np.array([0.0, 1.0, 0.0])
    yield from set_down(arm, scene, object, point, math.atan2(across[1], across[0]), _lowest_palm_m(frame))


def set_down(
    arm: Arm, scene: Scene, object: str, point: np.ndarray, closing_yaw_rad: float, lowest_palm_m: float = 0.0
) -> Motion:
    """Carry the held object to a point on a floor, release it, and go straight up."""
    in_gripper = arm.true_rotation.T @ (scene.position_m(object) - arm.true_position)
    height = half_height_m(scene, object)
    yield from arm.rise(arm.position[2] + CARRY_M - (scene.position_m(object)[2] - height))
    rotation = easiest(arm, point, closing_yaw_rad)
    target = point + (height + RELEASE_M) * UP - rotation @ in_gripper
    target[2] = max(target[2], lowest_palm_m - PALM_M)
    yield from arm.travel(np.array([*target[:2], max(arm.position[2], target[2])]), rotation)
    yield from down(arm, target)
    yield from arm.grip(OPEN)
    yield from arm.move(target + RETREAT_SLOW_M * UP, speed_m_s=RETREAT_M_S, settle=0)
    yield from arm.rise(max(TRAVEL_M, target[2] + CARRY_M))


def slot_m(scene: Scene, object: str, place: str) -> np.ndarray:
    """[3]: the first free slot of a place, on its floor; if none is free, the one with most room."""
    points = [place_point_m(scene, place, slot) for slot in PLACES[place].slots_m]
    free = [point for point in points if room_m(scene, object, point) > SLOT_FREE_M]
    return free[0] if free else max(points, key=lambda point: room_m(scene, object, point))


def table_point_m(scene: Scene, object: str) -> np.ndarray:
    """[3]: the point near the middle of the table's free area that has enough room, or as much as there is."""
    low, high = np.array(SPAWN_LOW_M), np.array(SPAWN_HIGH_M)
    xs, ys = (np.arange(low[i], high[i] + 1e-6, TABLE_GRID_M) for i in range(2))
    points = [np.array([x, y, 0.0]) for x in xs for y in ys]
    middle = (low + high) / 2

    def cost(point: np.ndarray) -> tuple[float, float]:
        missing = max(0.0, TABLE_ROOM_M - room_m(scene, object, point))
        return round(missing, 6), float(np.linalg.norm(point[:2] - middle))

    return min(points, key=cost)


def room_m(scene: Scene, object: str, point: np.ndarray) -> float:
    """From a point to the centre of the nearest other object, seen from above."""
    others = [scene.position_m(other)[:2] for other in scene.objects if other != object]
    return min((float(np.linalg.norm(other - point[:2])) for other in others), default=math.inf)


def _lowest_palm_m(frame: str) -> float:
    kind = FIXTURES[frame].kind if frame in FIXTURES else ""
    return RIM_M[kind] + RIM_ROOM_M if kind in RIM_M else 0.0

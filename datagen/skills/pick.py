"""Picking an object up, from above."""

from __future__ import annotations

import math

import numpy as np

from datagen.arena.fixtures import FIXTURES, SHELF_HALF_M
from datagen.arena.objects import OBJECTS
from datagen.skills.arm import CLOSED, OPEN, Arm, Motion
from datagen.skills.rotations import FLIP, UP, top_down
from datagen.skills.scene import Scene

TRAVEL_M = 0.25  # the empty hand passes over objects at this height of the TCP
GRASP_BELOW_TOP_M = 0.025  # of tall objects; low ones are grasped at their middle
SLOW_M, SLOW_M_S = 0.05, 0.15  # the last part of the way down
LIFT_M = 0.18
MAX_WIDTH_M = 0.075  # between the fingers, which open to 8 cm
FINGER_M = 0.048  # from the middle of the open hand to the middle of a finger
FINGER_ROOM_M = 0.012  # between that and another object
PALM_M = 0.037  # the palm is this far above the TCP
PALM_HALF_M = (0.104, 0.032)  # along the direction of closing, and across
PALM_ROOM_M = 0.005
GRASPED_M = 0.06  # a held object's centre is this close to the TCP
EMPTY_GAP_M = 0.01  # fingers that closed further than this hold nothing
ROUND_YAWS = 8  # directions that a cylinder is tried from
CROWDED_RAD = 3.0  # a finger, or the palm, without room is as bad as this turn of the wrist
SHELF_COS = 0.5  # the palm has room before a shelf's back when it is at most 30 degrees askew
WIDE_RAD_PER_M = 30.0  # 3 cm of width more are as bad as 0.9 rad


def pick(arm: Arm, scene: Scene, object: str) -> Motion:
    """Grasp an object from above and lift it by `LIFT_M`; ends there, or, without it, open at `TRAVEL_M`."""
    closing_yaw = _closing_yaw(arm, scene, object)
    if closing_yaw is None:
        return
    grasp = _grasp_m(scene, object)
    above = np.array([*grasp[:2], max(TRAVEL_M, grasp[2] + SLOW_M)])
    rotation = easiest(arm, grasp, closing_yaw)
    yield from arm.grip(OPEN, steps=2)
    yield from arm.rise(above[2])
    yield from arm.travel(np.array([*grasp[:2], arm.position[2]]), rotation)
    yield from down(arm, grasp)
    yield from arm.grip(CLOSED)
    yield from arm.rise(grasp[2] + LIFT_M, settle=2)
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
    spec, vertical = OBJECTS[object], np.abs(scene.rotation(object)[2])
    if spec.shape == "cylinder":
        return spec.half_m[0] * math.sqrt(max(0.0, 1.0 - vertical[2] ** 2)) + spec.half_m[2] * vertical[2]
    return float(vertical @ spec.half_m)


def easiest(arm: Arm, position: np.ndarray, closing_yaw_rad: float) -> np.ndarray:
    """[3, 3]: of the two ways to close along a direction, the one that turns the wrist less."""
    rotation = top_down(closing_yaw_rad)
    return min((rotation, rotation @ FLIP), key=lambda turned: _wrist_rad(arm, position, turned))


def _grasp_m(scene: Scene, object: str) -> np.ndarray:
    """[3]: where the TCP grasps an object."""
    return scene.position_m(object) + max(0.0, half_height_m(scene, object) - GRASP_BELOW_TOP_M) * UP


def _closing_yaw(arm: Arm, scene: Scene, object: str) -> float | None:
    """The direction to close the fingers in: across a narrow side, clear of other things; None if too wide."""
    position = _grasp_m(scene, object)

    def cost(grasp: tuple[float, float]) -> float:
        yaw, width = grasp
        side = FINGER_M * np.array([math.cos(yaw), math.sin(yaw)])
        crowded = sum(not _has_room(scene, object, position[:2] + sign * side) for sign in (-1, 1))
        crowded += not _palm_has_room(scene, object, position, yaw)
        wrist = _wrist_rad(arm, position, easiest(arm, position, yaw))
        return wrist + CROWDED_RAD * crowded + WIDE_RAD_PER_M * width

    grasps = [(yaw, width) for yaw, width in _grasps(scene, object) if width <= MAX_WIDTH_M]
    return min(grasps, key=cost)[0] if grasps else None


def _grasps(scene: Scene, object: str) -> list[tuple[float, float]]:
    """(direction to close in, width between the fingers) of the ways to grasp an object from above."""
    spec, rotation = OBJECTS[object], scene.rotation(object)
    upright = int(np.abs(rotation[2]).argmax())  # the object's axis that is nearest to the vertical
    if spec.shape == "cylinder" and upright == 2:
        return [(math.pi * k / ROUND_YAWS, 2 * spec.half_m[0]) for k in range(ROUND_YAWS)]
    if spec.shape == "cylinder":  # it lies: across its axis
        return [(math.atan2(rotation[1, 2], rotation[0, 2]) + math.pi / 2, 2 * spec.half_m[0])]
    axes = [axis for axis in range(3) if axis != upright]
    return [(math.atan2(rotation[1, axis], rotation[0, axis]), 2 * spec.half_m[axis]) for axis in axes]


def _has_room(scene: Scene, object: str, finger: np.ndarray) -> bool:
    """Whether a finger at (x, y) keeps clear of the other objects, each taken as a disc or an upright box."""
    for other in scene.objects:
        spec = OBJECTS[other]
        offset = scene.rotation(other).T @ [*(finger - scene.position_m(other)[:2]), 0.0]
        if spec.shape == "cylinder":
            gap = float(np.linalg.norm(offset[:2])) - spec.half_m[0]
        else:
            gap = float(np.linalg.norm(np.maximum(np.abs(offset[:2]) - spec.half_m[:2], 0.0)))
        if other != object and gap < FINGER_ROOM_M:
            return False
    return True


def _palm_has_room(scene: Scene, object: str, grasp: np.ndarray, closing_yaw_rad: float) -> bool:
    """Whether the palm comes down beside taller objects, and not on the back of a shelf."""
    closing = np.array([math.cos(closing_yaw_rad), math.sin(closing_yaw_rad), 0.0])
    along, across = closing, np.array([-closing[1], closing[0], 0.0])
    for other in scene.objects:
        half, position = OBJECTS[other].half_m, scene.position_m(other)
        if other != object and position[2] + half_height_m(scene, other) > grasp[2] + PALM_M:
            offset = np.abs([along @ (position - grasp), across @ (position - grasp)]) - PALM_HALF_M
            if np.linalg.norm(np.maximum(offset, 0.0)) < max(half[:2]) + PALM_ROOM_M:
                return False
    for fixture in scene.fixtures:
        if FIXTURES[fixture].kind == "shelf":
            offset = scene.rotation(fixture).T @ (grasp - scene.position_m(fixture))
            askew = abs(along @ scene.rotation(fixture)[:, 0]) > SHELF_COS
            if askew and (np.abs(offset[:2]) < SHELF_HALF_M).all():
                return False
    return True


def _wrist_rad(arm: Arm, position: np.ndarray, rotation: np.ndarray) -> float:
    """How far the last joint is turned away from its rest at a pose; infinite out of reach."""
    q, reached = arm.kinematics.solve(position, rotation)
    return abs(float(q[6] - arm.kinematics.rest_rad[6])) if reached else math.inf

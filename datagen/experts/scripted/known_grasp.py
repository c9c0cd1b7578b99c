"""Where to grasp an object whose shape, place and neighbours are known: from above, across a narrow side."""

from __future__ import annotations

import math

import numpy as np

from datagen.experts.scripted.pick import PALM_M, easiest, half_height_m, wrist_rad
from datagen.experts.scripted.scene import Scene, TcpPose
from predimem.envs.arena.fixtures import FIXTURES, SHELF_HALF_M
from predimem.envs.arena.robot.arm import Arm
from predimem.envs.arena.robot.rotations import UP

GRASP_BELOW_TOP_M = 0.025  # of tall objects; low ones are grasped at their middle
MAX_WIDTH_M = 0.075  # between the fingers, which open to 8 cm
FINGER_M = 0.048  # from the middle of the open gripper to the middle of a finger
FINGER_ROOM_M = 0.012  # between that and another object
PALM_HALF_M = (0.104, 0.032)  # along the direction of closing, and across
PALM_ROOM_M = 0.005
ROUND_YAWS = 8  # directions that a cylinder is tried from
CROWDED_RAD = 3.0  # a finger, or the palm, without room is as bad as this turn of the wrist
SHELF_COS = 0.5  # the palm has room before a shelf's back when it is at most 30 degrees askew
WIDE_RAD_PER_M = 30.0  # 3 cm of width more are as bad as 0.9 rad


def known_grasp(arm: Arm, scene: Scene, object: str, wide_rad_per_m: float = WIDE_RAD_PER_M) -> TcpPose | None:
    """The TCP's pose to grasp an object at; None if it is too wide."""
    closing_yaw = _closing_yaw(arm, scene, object, wide_rad_per_m)
    if closing_yaw is None:
        return None
    position = _grasp_m(scene, object)
    return position, easiest(arm, position, closing_yaw)


def _grasp_m(scene: Scene, object: str) -> np.ndarray:
    """[3]: where the TCP grasps an object."""
    return scene.position_m(object) + max(0.0, half_height_m(scene, object) - GRASP_BELOW_TOP_M) * UP


def _closing_yaw(arm: Arm, scene: Scene, object: str, wide_rad_per_m: float) -> float | None:
    """The direction to close the fingers in: across a narrow side, clear of other things; None if too wide."""
    position = _grasp_m(scene, object)

    def cost(grasp: tuple[float, float]) -> float:
        yaw, width = grasp
        side = FINGER_M * np.array([math.cos(yaw), math.sin(yaw)])
        crowded = sum(not _has_room(scene, object, position[:2] + sign * side) for sign in (-1, 1))
        crowded += not _palm_has_room(scene, object, position, yaw)
        wrist = wrist_rad(arm, position, easiest(arm, position, yaw))
        return wrist + CROWDED_RAD * crowded + wide_rad_per_m * width

    grasps = [(yaw, width) for yaw, width in _grasps(scene, object) if width <= MAX_WIDTH_M]
    return min(grasps, key=cost)[0] if grasps else None


def _grasps(scene: Scene, object: str) -> list[tuple[float, float]]:
    """(direction to close in, width between the fingers) of the ways to grasp an object from above."""
    extent, rotation = scene.extent(object), scene.rotation(object)
    upright = int(np.abs(rotation[2]).argmax())  # the object's axis that is nearest to the vertical
    if extent.round and upright == 2:
        return [(math.pi * k / ROUND_YAWS, 2 * extent.half_m[0]) for k in range(ROUND_YAWS)]
    if extent.round:  # it lies: across its axis
        return [(math.atan2(rotation[1, 2], rotation[0, 2]) + math.pi / 2, 2 * extent.half_m[0])]
    axes = [axis for axis in range(3) if axis != upright]
    return [(math.atan2(rotation[1, axis], rotation[0, axis]), 2 * extent.half_m[axis]) for axis in axes]


def _has_room(scene: Scene, object: str, finger: np.ndarray) -> bool:
    """Whether a finger at (x, y) keeps clear of the other objects, each taken as a disc or an upright box."""
    for other in scene.objects:
        extent = scene.extent(other)
        offset = scene.rotation(other).T @ [*(finger - scene.position_m(other)[:2]), 0.0]
        if extent.round:
            gap = float(np.linalg.norm(offset[:2])) - extent.half_m[0]
        else:
            gap = float(np.linalg.norm(np.maximum(np.abs(offset[:2]) - extent.half_m[:2], 0.0)))
        if other != object and gap < FINGER_ROOM_M:
            return False
    return True


def _palm_has_room(scene: Scene, object: str, grasp: np.ndarray, closing_yaw_rad: float) -> bool:
    """Whether the palm comes down beside taller objects, and not on the back of a shelf."""
    closing = np.array([math.cos(closing_yaw_rad), math.sin(closing_yaw_rad), 0.0])
    along, across = closing, np.array([-closing[1], closing[0], 0.0])
    for other in scene.objects:
        half, position = scene.extent(other).half_m, scene.position_m(other)
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

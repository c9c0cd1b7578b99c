"""Picking up, and putting down on the table, on furniture and into drawers and the microwave."""

from __future__ import annotations

import math

import numpy as np

from datagen.experts.memoryless.advice import STEP_M, TURN_RAD, Advice, approach, limited, near, rise, stay, towards
from datagen.experts.memoryless.drawer import facing_ahead
from datagen.experts.memoryless.hold import OPENED_GAP_M, around, holding, jammed
from datagen.experts.scripted.drawer import TRANSIT_M
from datagen.experts.scripted.insert import BEFORE_M, LOWEST_M, PITCH_RAD
from datagen.experts.scripted.insert import CARRY_M as INSIDE_CARRY_M
from datagen.experts.scripted.insert import RELEASE_M as INSIDE_RELEASE_M
from datagen.experts.scripted.pick import EMPTY_GAP_M, PALM_M, easiest, half_height_m
from datagen.experts.scripted.place import RELEASE_M, RIM_M, RIM_ROOM_M, slot_m, table_point_m
from datagen.experts.scripted.snapshot import Gripper, Snapshot
from predimem.envs.arena.fixtures import DOOR, FIXTURES, PLACES
from predimem.envs.arena.robot.arm import CLOSED, OPEN, Arm
from predimem.envs.arena.robot.rotations import FLIP, UP

LIFTED_M = {"table": 0.28, "cabinet": 0.46}  # of the TCP, with something in the gripper, by what is below
CABINET_FROM_M = (0.0, 0.15)  # x and y beyond which the cabinet with its drawers is below
OVER_THINGS_M = 0.30  # the way down to a grasp begins so far above it: over handles and the microwave's door
REST_M = 0.30  # of the TCP when something has been put down
ROOMY_M = 0.025  # aside is near enough where there is room
STEEP_RAD = 0.9  # below the horizon, until the gripper is before the microwave
WRIST_LIMIT_RAD = 2.7  # of the last joint, with 0.2 to spare
LEFT_RAD = 2.1  # the gripper turns up to so far to the left to close its fingers, and to the right up to pi less that
OVER_M = 0.07  # aside of the microwave's place, the gripper stays high
AHEAD = np.array([1.0, 0.0, 0.0])
CARRY_M = 0.12  # what is carried sideways is so high above the floor of its place


def pick(arm: Arm, gripper: Gripper, scene: Snapshot, object: str) -> Advice:
    if holding(gripper, scene, object):
        return rise(gripper, LIFTED_M["cabinet" if over_cabinet(gripper) else "table"], CLOSED)
    if jammed(gripper, scene, object):
        return unjam(gripper, scene, object)
    grasp = scene.grasp(arm, object)
    if grasp is None:
        return stay(OPEN)
    position, rotation = grasp[0], nearer_way(arm, gripper, scene, *grasp)
    at = near(gripper, position, 0.02)
    if gripper.gap_m < OPENED_GAP_M:  # closing on it; or it was missed, or dropped: open first
        if at and around(gripper, scene, object) and gripper.gap_m > EMPTY_GAP_M:
            return stay(CLOSED)
        return Advice(0.2 * STEP_M * UP, np.zeros(3), OPEN)
    return approach(gripper, position, rotation, -UP, OVER_THINGS_M, CLOSED, OPEN)


def occupied(gripper: Gripper, scene: Snapshot, object: str) -> bool:
    """Whether the fingers have to be freed before they can grasp: they are closed, or the object is stuck in them."""
    if gripper.gap_m < OPENED_GAP_M:
        return not around(gripper, scene, object)
    return jammed(gripper, scene, object)


def unjam(gripper: Gripper, scene: Snapshot, object: str) -> Advice:
    """What frees the open fingers of a box that is stuck in them: down to where friction holds the box, and a turn to
    the nearer of its sides. In the air the box turns along."""
    rotation = scene.rotation(object)
    side = gripper.rotation.T @ rotation[:, np.abs(rotation[2]).argmin()]  # any that is level
    off_rad = (math.atan2(side[1], side[0]) + math.pi / 4) % (math.pi / 2) - math.pi / 4
    return Advice(-STEP_M * UP, limited(off_rad * gripper.rotation[:, 2], TURN_RAD), OPEN)


def place(arm: Arm, gripper: Gripper, scene: Snapshot, object: str, where: str) -> Advice:
    """Of what is held, or has been put down there."""
    floor = floor_m(scene, object, where)
    height = half_height_m(scene, object)
    inside = PLACES[where].frame == DOOR
    if not holding(gripper, scene, object):
        if around(gripper, scene, object) and gripper.gap_m <= OPENED_GAP_M:
            return stay(OPEN)
        if inside and gripper.position[0] > _mouth_x_m(scene, where) - BEFORE_M:
            return Advice(-STEP_M * AHEAD, np.zeros(3), OPEN)
        return rise(gripper, max(REST_M, floor[2] + 0.25), OPEN)
    if inside:
        return _insert(arm, gripper, scene, object, where, floor)
    frame = PLACES[where].frame
    across = scene.rotation(frame)[:, 1] if frame in FIXTURES else np.array([0.0, 1.0, 0.0])
    rotation = nearer_way(arm, gripper, scene, floor, facing_down(arm, scene, floor, math.atan2(across[1], across[0])))
    in_gripper = gripper.rotation.T @ (scene.position_m(object) - gripper.position)
    target = floor + (height + RELEASE_M) * UP - rotation @ in_gripper
    kind = FIXTURES[frame].kind if frame in FIXTURES else ""
    target[2] = max(target[2], RIM_M[kind] + RIM_ROOM_M - PALM_M if kind in RIM_M else 0.0)
    carry = 0.20 if where.startswith("shelf") else CARRY_M
    near_m = ROOMY_M if kind in ("basket", "plate", "frying_pan") else 0.012
    return approach(gripper, target, rotation, -UP, carry, OPEN, CLOSED, near_m=near_m, deep_m=0.014)


def _insert(arm: Arm, gripper: Gripper, scene: Snapshot, object: str, where: str, floor: np.ndarray) -> Advice:
    """Over to before the microwave, level into it, and down: as `insert.place_in_microwave`."""
    rotation = facing_ahead(arm, scene, PITCH_RAD)
    turned = rotation @ gripper.rotation.T @ scene.rotation(object)
    height = float(np.abs(turned[2]) @ scene.extent(object).half_m)
    target = (
        floor
        + (height + INSIDE_RELEASE_M) * UP
        - rotation @ gripper.rotation.T @ (scene.position_m(object) - gripper.position)
    )
    target[2] = max(target[2], floor[2] + LOWEST_M)
    error = target - gripper.position
    mouth_x_m = _mouth_x_m(scene, where)
    outside = gripper.position[0] < mouth_x_m - 0.5 * BEFORE_M
    if outside and abs(error[1]) > OVER_M:  # high until it is before its place; level only there, where the wrist can
        before = np.array([mouth_x_m - BEFORE_M, target[1], TRANSIT_M - 0.04])
        return towards(gripper, before, facing_ahead(arm, scene, STEEP_RAD), CLOSED)
    if error[0] > 0.012:
        target = target + INSIDE_CARRY_M * UP
    slope = 10.0 if gripper.position[0] < mouth_x_m else 2.0  # it goes in aligned, and does not come out again
    before_m = float(target[0]) - mouth_x_m + BEFORE_M
    return approach(gripper, target, rotation, AHEAD, before_m, OPEN, CLOSED, near_m=0.02, deep_m=0.014, slope=slope)


def _mouth_x_m(scene: Snapshot, where: str) -> float:
    """x of the microwave's face."""
    return float(scene.position_m(PLACES[where].frame)[0])


def over_cabinet(gripper: Gripper) -> bool:
    return bool(gripper.position[0] > CABINET_FROM_M[0] and gripper.position[1] > CABINET_FROM_M[1])


def rests(scene: Snapshot, object: str, where: str) -> bool:
    """Whether a thing has been put into its place."""
    off = scene.position_m(object) - half_height_m(scene, object) * UP - floor_m(scene, object, where)
    return bool(np.linalg.norm(off[:2]) < 0.05 and abs(off[2]) < 0.04)


def floor_m(scene: Snapshot, object: str, place: str) -> np.ndarray:
    return table_point_m(scene, object) if place == "table" else slot_m(scene, object, place)


def nearer_way(arm: Arm, gripper: Gripper, scene: Snapshot, point: np.ndarray, rotation: np.ndarray) -> np.ndarray:
    """[3, 3]: of the two ways to close along a direction, the one that needs less turning from where the gripper is, if
    the wrist has room for it: which of them is easier turns over at an angle that no image shows.

    Between a quarter turn to the left and one to the right, left it is, up to LEFT_RAD: where both ways are as near, an
    actor that learnt from both would not turn at all, and stay there.
    """
    other = rotation @ FLIP
    if LEFT_RAD - math.pi < _yaw_between_rad(gripper.rotation, rotation) <= LEFT_RAD:
        return rotation
    return other if _has_room(arm, scene, point, other) else rotation


def _yaw_between_rad(start: np.ndarray, end: np.ndarray) -> float:
    """About the vertical, in (-pi, pi], left is positive: from where the fingers close at one pose to the other's."""
    (x0, y0), (x1, y1) = start[:2, 1], end[:2, 1]
    return math.atan2(x0 * y1 - y0 * x1, x0 * x1 + y0 * y1)


def _has_room(arm: Arm, scene: Snapshot, point: np.ndarray, rotation: np.ndarray) -> bool:
    """Whether a pose is within reach, and the wrist within its limits there; asked once for a pose."""

    def room() -> bool:
        q, reached = arm.kinematics.solve(point, rotation)
        return reached and bool(abs(q[6]) < WRIST_LIMIT_RAD)

    return scene.once(f"wrist {np.round(point, 2).tolist()} {np.round(rotation[:2, 0], 1).tolist()}", room)


def facing_down(arm: Arm, scene: Snapshot, point: np.ndarray, yaw_rad: float) -> np.ndarray:
    """`pick.easiest`, once for a point: it asks the arm's inverse kinematics."""
    key = f"easiest {np.round(point, 2).tolist()} {yaw_rad:.2f}"
    return scene.once(key, lambda: easiest(arm, point, yaw_rad))

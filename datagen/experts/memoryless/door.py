"""Opening and closing the microwave's door."""

from __future__ import annotations

import numpy as np

from datagen.experts.memoryless.advice import (
    GAIN,
    STEP_M,
    Advice,
    approach,
    limited,
    near,
    rise,
    stay,
    towards,
    turn_to,
)
from datagen.experts.memoryless.hold import HANDLE_GAP_M, OPENED_GAP_M, gripping
from datagen.experts.scripted import door as doors
from datagen.experts.scripted.snapshot import Gripper, Snapshot
from predimem.envs.arena.fixtures import DOOR, MICROWAVE
from predimem.envs.arena.robot.arm import CLOSED, OPEN, Arm
from predimem.envs.arena.robot.rotations import UP

SWING_RAD = 0.03  # in a control step
GRIPPED_M = 0.03  # the bar slides and turns between the fingers
# As with drawers: once it is at it, the gripper goes on further than would do.
SWUNG_ENOUGH_RAD, OPEN_ENOUGH_RAD = 1.64, 1.54
PUSHED_ENOUGH_RAD, SHUT_ENOUGH_RAD = 0.015, 0.04
HIGH_M = 0.38  # of the TCP over the open door,
CLEAR_M, BLEND_M = 0.10, 0.06  # until it is so far inside of it
OVER_M = 0.17  # the way down to where the door is pushed begins so far above it
PUSH_AT_M = (MICROWAVE.width_m - doors.PUSH_INSET_M, MICROWAVE.height_m - doors.PUSH_BELOW_M)  # along the door, and up
PUSHED_M = (0.035, 0.022)  # so far aside and above or below of there it is pushed as well
INTO_M = 0.012  # in a control step, while pushing


def door_handle_m(scene: Snapshot, angle_rad: float | None = None) -> np.ndarray:
    """[3]: the middle of the door's handle, where the door is or at an angle."""
    angle = scene.opening(DOOR) if angle_rad is None else angle_rad
    return doors.in_door_m(scene.position_m("door"), angle, MICROWAVE.handle_in_door_m)


def in_door_frame(scene: Snapshot, point: np.ndarray) -> np.ndarray:
    """[3]: a point of the world seen from the door, whose outside is -x."""
    x, y, z = point - scene.position_m("door")
    cos, sin = np.cos(scene.opening(DOOR)), np.sin(scene.opening(DOOR))
    return np.array([cos * x + sin * y, cos * y - sin * x, z])


def open_door(arm: Arm, gripper: Gripper, scene: Snapshot) -> Advice:
    angle, handle = scene.opening(DOOR), door_handle_m(scene)
    rotation = doors.door_rotation(arm, angle)
    axis = rotation[:, 2]
    pulling = gripping(gripper, handle, GRIPPED_M)
    if angle >= (SWUNG_ENOUGH_RAD if pulling else OPEN_ENOUGH_RAD):
        if gripper.gap_m < OPENED_GAP_M:
            return stay(OPEN) if near(gripper, handle, 0.05) else rise(gripper, HIGH_M, OPEN)
        if near(gripper, handle, doors.BEFORE_M):
            return Advice(-STEP_M * axis, np.zeros(3), OPEN)
        return _home(arm, gripper, scene)
    if pulling:
        ahead = angle + SWING_RAD
        pull, off = door_handle_m(scene, ahead) - handle, handle - gripper.position
        pull_axis = pull / np.linalg.norm(pull)
        step = limited(pull + GAIN * (off - (off @ pull_axis) * pull_axis), STEP_M)
        return Advice(step, turn_to(gripper, doors.door_rotation(arm, ahead)), CLOSED)
    if gripper.gap_m < OPENED_GAP_M:
        if near(gripper, handle, GRIPPED_M) and gripper.gap_m > 0.5 * HANDLE_GAP_M:
            return stay(CLOSED)
        return Advice(-0.2 * STEP_M * axis, np.zeros(3), OPEN)
    return approach(gripper, handle, rotation, axis, doors.BEFORE_M, CLOSED, OPEN)


def _home(arm: Arm, gripper: Gripper, scene: Snapshot) -> Advice:
    """Over the open door, not through it. One flows into the other: at an edge between up and home, an actor that does
    not see a centimetre stays for ever."""
    clear = float(np.clip((in_door_frame(scene, gripper.position)[0] - CLEAR_M) / BLEND_M + 0.5, 0.0, 1.0))
    height = clear * float(arm.home_position[2]) + (1 - clear) * HIGH_M
    over = float(np.clip((gripper.position[2] - HIGH_M + 0.05) / BLEND_M + 1.0, 0.0, 1.0))
    error = np.array([*arm.home_position[:2], height]) - gripper.position
    step = max(clear, over) * limited(GAIN * error * [1.0, 1.0, 0.0], STEP_M)
    step[2] = np.clip(GAIN * error[2], -STEP_M, STEP_M)
    return Advice(step, turn_to(gripper, arm.rest_rotation), OPEN)


def close_door(arm: Arm, gripper: Gripper, scene: Snapshot) -> Advice:
    angle = scene.opening(DOOR)
    x, y, z = in_door_frame(scene, gripper.position)
    along, up = PUSH_AT_M
    aside, above = abs(y - along), abs(z - up)
    pushing = aside < PUSHED_M[0] and above < PUSHED_M[1] and -0.10 < x < 0.01
    if angle <= (PUSHED_ENOUGH_RAD if pushing and x > -0.05 else SHUT_ENOUGH_RAD):
        if x > -0.10 and aside < 0.12 and above < 0.12:
            return Advice(-STEP_M * np.array([1.0, 0.0, 0.0]), np.zeros(3), CLOSED)
        return towards(gripper, arm.home_position, arm.rest_rotation, CLOSED)
    if gripper.gap_m > 0.02:
        return stay(CLOSED)
    rotation = doors.door_rotation(arm, angle)
    outwards = doors.in_door_m(np.zeros(3), angle, (-1.0, 0.0, 0.0))
    if pushing:
        there = doors.in_door_m(scene.position_m("door"), angle, (x, along, up))
        return Advice(
            limited(GAIN * (there - gripper.position), 0.006) - INTO_M * outwards, turn_to(gripper, rotation), CLOSED
        )
    start = doors.in_door_m(scene.position_m("door"), angle, (-doors.PUSH_FROM_M - 0.01, along, up))
    return approach(gripper, start, rotation, -UP, OVER_M, CLOSED, CLOSED, aside_m=0.012)

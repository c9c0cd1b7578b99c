"""Pouring: tilt the bottle with its mouth over the target, hold it there, and turn it back."""

from __future__ import annotations

import math

import numpy as np

from datagen.experts.scripted.pick import half_height_m, holds
from datagen.experts.scripted.place import CARRY_M
from datagen.experts.scripted.scene import Scene
from predimem.envs.arena.fixtures import POUR_TOP_M
from predimem.envs.arena.predicates import POUR_STEPS
from predimem.envs.arena.robot.arm import CONTROL_HZ, Arm, Motion
from predimem.envs.arena.robot.rotations import UP, rotation_matrix, top_down

TILT_RAD = 1.65  # beyond the pouring angle of 75 degrees, with 20 degrees for slip and lag
TILT_RAD_S = 1.2
MOUTH_ABOVE_M = 0.16  # over the target's top: the gripper beside the mouth clears it
HOLD_STEPS = POUR_STEPS + 6
UPRIGHT_STEPS = 3  # of waiting until the bottle has come upright
YAWS = 12  # directions of the gripper that are tried,
AXES = ((1.0, 0.0, 0.0), (-1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, -1.0, 0.0))  # to tilt about, in its frame
CHECKS = 5  # poses along the tilt that have to be reached
ROOM_RAD = 0.05  # from the limits of the joints


def pour(arm: Arm, scene: Scene, object: str, target: str) -> Motion:
    """Pour once from the held object over a target; ends upright, high over the target.

    Nothing, where the object is not held or no tilt over the target can be reached.
    """
    if not holds(arm, scene, object):
        return
    mouth = scene.position_m(object) + scene.extent(object).half_m[2] * scene.rotation(object) @ UP
    mouth_in_gripper = arm.true_rotation.T @ (mouth - arm.true_position)
    over = scene.position_m(target) + (POUR_TOP_M[target] + MOUTH_ABOVE_M) * UP
    found = tilt(arm, mouth_in_gripper, over)
    if found is None:
        return
    upright, axis = found

    def tilted(share: float) -> tuple[np.ndarray, np.ndarray]:
        return _pose(upright, axis, share * TILT_RAD, mouth_in_gripper, over)

    steps = math.ceil(TILT_RAD / TILT_RAD_S * CONTROL_HZ)
    yield from arm.rise(arm.position[2] + CARRY_M - (scene.position_m(object)[2] - half_height_m(scene, object)))
    high = arm.position[2]
    start, _ = tilted(0.0)
    yield from arm.travel(np.array([*start[:2], max(high, start[2])]), upright)
    yield from arm.move(start, upright)
    yield from arm.follow(lambda share: tilted(_eased(share)), steps)
    yield from arm.wait(HOLD_STEPS)
    yield from arm.follow(lambda share: tilted(1.0 - _eased(share)), steps, settle=UPRIGHT_STEPS)
    yield from arm.rise(high)


def tilt(arm: Arm, mouth_in_gripper: np.ndarray, over: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """(rotation of the gripper when the bottle is upright [3, 3], axis to tilt about in the gripper's frame [3]).

    The one that begins nearest to the rest pose, of those that keep `ROOM_RAD` from the limits of the joints.
    """
    starts = []
    for yaw in np.arange(YAWS) * 2 * math.pi / YAWS:
        upright = top_down(yaw)
        q, reached = arm.kinematics.solve(over - upright @ mouth_in_gripper, upright)
        if reached:
            starts.append((np.abs(q - arm.kinematics.rest_rad)[1:].max(), yaw, upright, q))
    for _, _, upright, q in sorted(starts, key=lambda start: start[:2]):
        for axis in AXES:
            if reaches(arm, q, upright, np.array(axis), mouth_in_gripper, over):
                return upright, np.array(axis)
    return None


def reaches(
    arm: Arm, q: np.ndarray, upright: np.ndarray, axis: np.ndarray, mouth_in_gripper: np.ndarray, over: np.ndarray
) -> bool:
    """Whether the tilt can be done from the joint angles q [7] without coming near their limits."""
    for angle in np.linspace(0.0, TILT_RAD, CHECKS + 1)[1:]:
        q, reached = arm.kinematics.inverse(q, *_pose(upright, axis, angle, mouth_in_gripper, over))
        if not reached or arm.kinematics.room_rad(q) < ROOM_RAD:
            return False
    return True


def _pose(
    upright: np.ndarray, axis: np.ndarray, angle_rad: float, mouth_in_gripper: np.ndarray, over: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The TCP pose at an angle of the tilt, which turns about the mouth."""
    rotation = upright @ rotation_matrix(angle_rad * axis)
    return over - rotation @ mouth_in_gripper, rotation


def _eased(share: float) -> float:
    return share * share * (3 - 2 * share)

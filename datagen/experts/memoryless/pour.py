"""Pouring, round a loop: down upright, tilt low, rise while it pours, come back upright higher.

Tilting and coming back look alike. Where the gripper does them at different heights, where it is says which is due.
"""

from __future__ import annotations

import numpy as np

from datagen.experts.memoryless.advice import (
    GAIN,
    SLOW_STEP_M,
    STEP_M,
    TURN_RAD,
    Advice,
    approach,
    limited,
    near,
    turn_to,
)
from datagen.experts.memoryless.pick_place import CARRY_M
from datagen.experts.scripted import pour as pours
from datagen.experts.scripted.snapshot import Gripper, Snapshot
from predimem.envs.arena.fixtures import POUR_TOP_M
from predimem.envs.arena.robot.arm import CLOSED, Arm
from predimem.envs.arena.robot.rotations import UP, angle_between_rad, rotation_matrix, rotation_vector, top_down

LOW_M, HIGH_M = 0.13, 0.23  # of the mouth above the target's top
MIDDLE_M = 0.185
POURING_RAD = 1.55  # from here on it pours: the predicate's 75 degrees and some more
UPRIGHT_RAD = 0.25
START_M = 0.02
NEAR_M, DOWN_M = 0.03, 0.004  # over the target it goes down so slowly: a planner that counts has time to say stop
RISE_M = 0.0045  # in a control step: longer on the way up than pouring has to last


def pour(arm: Arm, gripper: Gripper, scene: Snapshot, object: str, target: str) -> Advice:
    """With the object in the gripper."""
    half = scene.extent(object).half_m[2]
    mouth = scene.position_m(object) + half * scene.rotation(object) @ UP
    mouth_in_gripper = gripper.rotation.T @ (mouth - gripper.position)
    top = scene.position_m(target) + POUR_TOP_M[target] * UP
    upright, axis = _tilt(arm, scene, gripper, mouth_in_gripper, top + pours.MOUTH_ABOVE_M * UP)
    angle = float(rotation_vector(upright.T @ gripper.rotation) @ axis)
    height = float(mouth[2] - top[2])
    if angle < UPRIGHT_RAD:
        begun = max(0.0, angle) if height < LOW_M + 0.03 else 0.0
        rotation = upright @ rotation_matrix(begun * axis)
        start = top + LOW_M * UP - rotation @ mouth_in_gripper
        askew = angle_between_rad(gripper.rotation, rotation) > 0.12
        if askew or not near(gripper, start, START_M):
            advice = approach(gripper, start, rotation, -UP, CARRY_M, CLOSED, CLOSED)
            over = np.linalg.norm((mouth - top)[:2]) < NEAR_M and height < HIGH_M + 0.02
            down = max(float(advice.step_m[2]), -DOWN_M) if over else float(advice.step_m[2])
            return Advice(np.array([*advice.step_m[:2], down]), advice.turn_rad, CLOSED)
    if angle < POURING_RAD and height < MIDDLE_M:
        turned, up = angle + TURN_RAD, LOW_M
    elif height < HIGH_M - 0.01:
        turned, up = pours.TILT_RAD, height + RISE_M
    else:
        turned, up = max(0.0, angle - TURN_RAD), HIGH_M
    rotation = upright @ rotation_matrix(turned * axis)
    rotation = gripper.rotation @ rotation_matrix(limited(rotation_vector(gripper.rotation.T @ rotation), TURN_RAD))
    wanted = top + np.clip(up, height - SLOW_STEP_M, height + SLOW_STEP_M) * UP
    sideways = limited(GAIN * ((wanted - mouth) * [1, 1, 0]), SLOW_STEP_M)
    step = mouth + sideways + (wanted - mouth) * [0, 0, 1] - rotation @ mouth_in_gripper - gripper.position
    return Advice(limited(step, STEP_M), turn_to(gripper, rotation), CLOSED)


def _tilt(
    arm: Arm, scene: Snapshot, gripper: Gripper, mouth_in_gripper: np.ndarray, over: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """(rotation of the gripper when the bottle is upright, axis to tilt about in its frame): the ones that need the
    least turning from where the gripper is and can be reached; else those of `pour.tilt`.
    """
    where = f"{np.round(over, 2).tolist()} {np.round(mouth_in_gripper, 2).tolist()}"
    ways = [(*_uprighted(gripper.rotation, np.array(axis)), np.array(axis)) for axis in pours.AXES]
    for _, upright, axis in sorted(ways, key=lambda way: round(way[0], 1)):
        if _can(arm, scene, where, upright, axis, mouth_in_gripper, over):
            return upright, axis
    level = arm.rest_rotation, np.array([1.0, 0.0, 0.0])
    return scene.once(f"tilt {where}", lambda: pours.tilt(arm, mouth_in_gripper, over) or level)


def _uprighted(rotation: np.ndarray, axis: np.ndarray) -> tuple[float, np.ndarray]:
    """(what tilting about an axis of the gripper does not explain of how it leans, in rad; the rotation upright)."""
    tilted = float(np.arctan2(np.cross(axis, UP) @ rotation[2], -rotation[2, 2]))
    tilted = float(np.clip(tilted, 0.0, pours.TILT_RAD))
    upright = rotation @ rotation_matrix(-tilted * axis)
    leaning = float(np.arccos(np.clip(-upright[2, 2], -1.0, 1.0)))
    return leaning, top_down(float(np.arctan2(upright[1, 1], upright[0, 1])))


def _can(
    arm: Arm, scene: Snapshot, where: str, upright: np.ndarray, axis: np.ndarray, mouth: np.ndarray, over: np.ndarray
) -> bool:
    """Whether a tilt can be reached, once for a direction of the gripper."""
    yaw = round(float(np.arctan2(upright[1, 1], upright[0, 1])), 1)

    def reached() -> bool:
        q, there = arm.kinematics.solve(over - top_down(yaw) @ mouth, top_down(yaw))
        return there and pours.reaches(arm, q, top_down(yaw), axis, mouth, over)

    return scene.once(f"can tilt {where} {yaw} {axis.tolist()}", reached)

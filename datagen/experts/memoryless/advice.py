"""One control step of an expert, and the parts that experts are made of."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from datagen.experts.scripted.snapshot import Gripper
from predimem.envs.arena.robot.rotations import UP, rotation_vector

STEP_M, SLOW_STEP_M, TURN_RAD = 0.015, 0.008, 0.036  # at most, in a control step
GAIN = 0.4


@dataclass(frozen=True)
class Advice:
    """For one control step, in the world frame: step_m [3], turn_rad [3] (rotation vector) and the gripper."""

    step_m: np.ndarray
    turn_rad: np.ndarray
    gripper: float


def approach(
    gripper: Gripper,
    position: np.ndarray,
    rotation: np.ndarray,
    axis: np.ndarray,
    before_m: float,
    gripper_there: float,
    on_way: float,
    near_m: float = 0.009,
    deep_m: float = 0.007,
    aside_m: float = 0.008,
    slope: float = 4.0,
) -> Advice:
    """Down a funnel along `axis` to a pose; `gripper_there` once it is `near_m` sideways and `deep_m` along, `on_way`
    before. Both are what a grasp forgives, so that an actor that is a little off does not hesitate.

    The further the gripper is aside, or turned, the further before the pose it aims: `slope` times as much, at most
    `before_m`.
    """
    error, turn = position - gripper.position, rotation_vector(rotation @ gripper.rotation.T)
    along = float(error @ axis)
    lateral = error - along * axis
    off_m, off_rad = float(np.linalg.norm(lateral)), float(np.linalg.norm(turn))
    before = float(np.clip((off_m - aside_m) * slope + (off_rad - 0.08) * 0.4, 0.0, before_m))
    if off_m < near_m and abs(along) < deep_m and off_rad < 0.12:
        return stay(gripper_there)
    ahead = float(np.clip(GAIN * (along - before), -STEP_M, SLOW_STEP_M if along < 0.06 else STEP_M))
    sideways = limited(GAIN * lateral, STEP_M)
    if before - along > 0.04:  # too far in: back out before going sideways
        sideways *= 0.15
    return Advice(sideways + ahead * axis, limited(turn, TURN_RAD), on_way)


def towards(gripper: Gripper, position: np.ndarray, rotation: np.ndarray, command: float) -> Advice:
    """Up first, then straight to a pose."""
    error = position - gripper.position
    step = limited(GAIN * error, STEP_M)
    if error[2] > 0.03:
        step[:2] *= 0.3
    return Advice(step, turn_to(gripper, rotation), command)


def rise(gripper: Gripper, height_m: float, command: float) -> Advice:
    up = float(np.clip(GAIN * (height_m - gripper.position[2]), 0.0, STEP_M))
    return Advice(up * UP, np.zeros(3), command)


def stay(command: float) -> Advice:
    return Advice(np.zeros(3), np.zeros(3), command)


def turn_to(gripper: Gripper, rotation: np.ndarray) -> np.ndarray:
    return limited(rotation_vector(rotation @ gripper.rotation.T), TURN_RAD)


def limited(vector: np.ndarray, length: float) -> np.ndarray:
    return vector * min(1.0, length / max(float(np.linalg.norm(vector)), 1e-9))


def near(gripper: Gripper, position: np.ndarray, within_m: float) -> bool:
    return bool(np.linalg.norm(gripper.position - position) < within_m)

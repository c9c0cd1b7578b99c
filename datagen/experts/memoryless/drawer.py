"""Opening and closing a drawer."""

from __future__ import annotations

import numpy as np

from datagen.experts.memoryless.advice import (
    GAIN,
    SLOW_STEP_M,
    STEP_M,
    Advice,
    approach,
    near,
    rise,
    stay,
    towards,
    turn_to,
)
from datagen.experts.memoryless.hold import HANDLE_GAP_M, OPENED_GAP_M, gripping
from datagen.experts.scripted import drawer as drawers
from datagen.experts.scripted.snapshot import Gripper, Snapshot
from predimem.envs.arena.fixtures import CABINET
from predimem.envs.arena.robot.arm import CLOSED, OPEN, Arm

REST_M = 0.30  # of the TCP when the drawer has been opened
# Once it is at it, the gripper goes on further than would do: an actor sees a centimetre less or more.
PULLED_ENOUGH_M, OPEN_ENOUGH_M = 0.19, 0.166
PUSHED_ENOUGH_M, SHUT_ENOUGH_M = 0.003, 0.012
CLOSED_GAP_M = 0.5 * HANDLE_GAP_M  # of fingers that have nothing between them
PUSH_HIGH_M = 0.020  # a vertical bar is pushed as well a little above or below its middle


def handle_m(scene: Snapshot, drawer: str) -> np.ndarray:
    """[3]: the middle of a drawer's handle."""
    return scene.position_m(drawer) + scene.rotation(drawer) @ np.array(CABINET.handle_in_drawer_m)


def open_drawer(arm: Arm, gripper: Gripper, scene: Snapshot, drawer: str) -> Advice:
    handle, rotation = handle_m(scene, drawer), facing_ahead(arm, scene, drawers.PITCH_RAD)
    axis = rotation[:, 2]
    pulling = gripping(gripper, handle, 0.02)
    if scene.opening(drawer) >= (PULLED_ENOUGH_M if pulling else OPEN_ENOUGH_M):
        if gripper.gap_m < OPENED_GAP_M:
            return stay(OPEN) if near(gripper, handle, 0.05) else rise(gripper, REST_M, OPEN)
        behind = float((handle - gripper.position) @ axis)
        if behind < drawers.BEFORE_M - 0.01 and near(gripper, handle, drawers.BEFORE_M):
            return Advice(-STEP_M * axis, np.zeros(3), OPEN)
        look = facing_ahead(arm, scene, drawers.LOOK_PITCH_RAD)
        return towards(gripper, handle + drawers.LOOK_FROM_HANDLE_M, look, OPEN)
    if pulling:
        return Advice(np.array([-SLOW_STEP_M, 0.0, 0.0]), turn_to(gripper, rotation), CLOSED)
    if gripper.gap_m < OPENED_GAP_M:
        if near(gripper, handle, 0.02) and gripper.gap_m > 0.5 * HANDLE_GAP_M:
            return stay(CLOSED)
        return Advice(-0.2 * STEP_M * axis, np.zeros(3), OPEN)
    return approach(gripper, handle, rotation, axis, drawers.BEFORE_M, CLOSED, OPEN)


def close_drawer(arm: Arm, gripper: Gripper, scene: Snapshot, drawer: str) -> Advice:
    handle, rotation = handle_m(scene, drawer), facing_ahead(arm, scene, drawers.PITCH_RAD)
    ahead = np.array([1.0, 0.0, 0.0])
    error = handle + (scene.opening(drawer) + 0.004) * ahead - gripper.position  # 4 mm into its place: the gripper lags
    aligned = abs(error[1]) < 0.014 and abs(error[2]) < PUSH_HIGH_M
    pushing = aligned and handle[0] - 0.03 < gripper.position[0] < handle[0] + 0.02 and gripper.gap_m <= 0.02
    shut = scene.opening(drawer) <= (PUSHED_ENOUGH_M if pushing else SHUT_ENOUGH_M)
    between = gripper.gap_m > (CLOSED_GAP_M if shut else 0.02) and near(gripper, handle, 0.05)
    if between:  # the bar may be: fingers that leave it closed pull the drawer out again
        return Advice((-0.2 if gripper.gap_m < OPENED_GAP_M else -0.5) * STEP_M * ahead, np.zeros(3), OPEN)
    if shut:
        if gripper.position[0] > handle[0] - 0.06 and near(gripper, handle, 0.12):
            return Advice(-STEP_M * ahead, np.zeros(3), CLOSED)
        return towards(gripper, arm.home_position, arm.rest_rotation, CLOSED)
    if gripper.gap_m > 0.02:
        away = Advice(-0.5 * STEP_M * ahead, np.zeros(3), CLOSED)
        return away if near(gripper, handle, 0.08) else stay(CLOSED)
    if aligned and gripper.position[0] < handle[0] + 0.02:
        step = np.array([0.010, *(GAIN * error[1:])])
        return Advice(step, turn_to(gripper, rotation), CLOSED)
    start = handle - drawers.PUSH_FROM_M * ahead
    return approach(gripper, start, rotation, ahead, 0.06, CLOSED, CLOSED, aside_m=0.004)


def facing_ahead(arm: Arm, scene: Snapshot, pitch_rad: float) -> np.ndarray:
    """`drawer.nearest_forward`, once for a pitch."""
    return scene.once(f"ahead {pitch_rad}", lambda: drawers.nearest_forward(arm, pitch_rad))

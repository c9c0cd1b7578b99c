"""Labels for any state: the actions that an expert would take from there on, rolled out without physics.

Actions are those of `pd_ee_delta_pose`, one for each control step (20 Hz), so that a chunk can be played as
it is. What an action commands is relative to where the gripper is, and the arm covers `REACHED_SHARE` of it
within the step, without a delay: so commanded steps add up to a path, and no controller is simulated.
"""

from __future__ import annotations

import numpy as np
from transforms3d.euler import mat2euler

from datagen.experts.memoryless.advice import Advice
from datagen.experts.memoryless.door import door_handle_m, in_door_frame
from datagen.experts.memoryless.drawer import handle_m
from datagen.experts.memoryless.expert import advise
from datagen.experts.memoryless.hold import HANDLE_GAP_M, around, grasped_width_m, holding
from datagen.experts.scripted.execute import Order
from datagen.experts.scripted.pick import EMPTY_GAP_M
from datagen.experts.scripted.snapshot import CLOSING_M, OPEN_GAP_M, OPENING_SHARE, Gripper, Snapshot
from predimem.envs.arena.fixtures import CABINET, DOOR, DRAWERS, JOINTS, MICROWAVE
from predimem.envs.arena.robot.arm import CLOSED, DELTA_M, DELTA_RAD, Arm
from predimem.envs.arena.robot.rotations import rotation_matrix

REACHED_SHARE = 0.403  # of a commanded step; measured, in free space
HANDLE_REACH_M = 0.02
DOOR_FACE_M = 0.030  # outside of the hinge's plane the TCP is when the fingers touch the door
FINGER_M = 0.015  # the closed fingers push with what is this far ahead of the TCP


def action_of(advice: Advice) -> np.ndarray:
    """float32 [7]: the action of `pd_ee_delta_pose` that moves the gripper as advised."""
    moved = advice.step_m / (REACHED_SHARE * DELTA_M)
    # ManiSkill scales the rotation by its lower bound, which is negative: the sign is turned.
    turned = -np.array(mat2euler(rotation_matrix(advice.turn_rad / REACHED_SHARE), "rxyz")) / DELTA_RAD
    return np.r_[np.clip(moved, -1, 1), np.clip(turned, -1, 1), advice.gripper].astype(np.float32)


def chunk(arm: Arm, gripper: Gripper, scene: Snapshot, subtask: Order, steps: int) -> np.ndarray:
    """float32 [steps, 7]: the expert's next actions. gripper and scene stay as they are."""
    scene = scene.copy()
    actions = []
    for _ in range(steps):
        advice = advise(arm, gripper, scene, subtask)
        actions.append(action_of(advice))
        gripper = advance(gripper, scene, advice)
    return np.stack(actions)


def advance(gripper: Gripper, scene: Snapshot, advice: Advice) -> Gripper:
    """The gripper after one control step without physics. What it holds, pulls and pushes moves along in `scene`."""
    after, stop_m = gripper.moved(advice.step_m, advice.turn_rad), _stop_m(gripper, scene)
    held = next((o for o in scene.objects if holding(gripper, scene, o)), None)
    pulled = next((joint for joint in JOINTS if _grips(gripper, scene, joint)), None)
    if advice.gripper == CLOSED:
        if held is not None:
            scene.carry(held, gripper, after)
        elif pulled == DOOR:
            _swing(scene, _swung_rad(scene, gripper, after))
        elif pulled is not None:
            opening = scene.opening(pulled) + float(gripper.position[0] - after.position[0])
            scene.slide(pulled, float(np.clip(opening, 0.0, CABINET.travel_m)))
        _push(gripper, after, scene)
        after.gap_m = min(gripper.gap_m, max(gripper.gap_m - CLOSING_M, stop_m))
    else:
        after.gap_m = gripper.gap_m + OPENING_SHARE * (OPEN_GAP_M - gripper.gap_m)
    return after


def _grips(gripper: Gripper, scene: Snapshot, joint: str) -> bool:
    return _at_handle(gripper, scene, joint) and EMPTY_GAP_M < gripper.gap_m < HANDLE_GAP_M + 0.008


def _at_handle(gripper: Gripper, scene: Snapshot, joint: str) -> bool:
    handle = door_handle_m(scene) if joint == DOOR else handle_m(scene, joint)
    return bool(np.linalg.norm(gripper.position - handle) < HANDLE_REACH_M)


def _swung_rad(scene: Snapshot, gripper: Gripper, after: Gripper) -> float:
    """How far a step of the gripper turns the door that it holds."""
    (x, y, _), (there_x, there_y, _) = (h.position - scene.position_m("door") for h in (gripper, after))
    return float(np.arctan2(x * there_y - y * there_x, x * there_x + y * there_y))


def _swing(scene: Snapshot, by_rad: float) -> None:
    scene.openings[DOOR] = float(np.clip(scene.openings[DOOR] + by_rad, 0.0, MICROWAVE.limit_rad))


def _push(gripper: Gripper, after: Gripper, scene: Snapshot) -> None:
    if gripper.gap_m > EMPTY_GAP_M:
        return
    for drawer in DRAWERS:
        handle = handle_m(scene, drawer)
        touches = np.abs(gripper.position[1:] - handle[1:]).max() < 0.03
        into = float(after.position[0] + FINGER_M - handle[0])
        if touches and 0.0 < into < 0.05:
            scene.slide(drawer, max(0.0, scene.opening(drawer) - into))
    x, y, z = in_door_frame(scene, after.position)
    into = x + DOOR_FACE_M
    if 0.05 < y < MICROWAVE.width_m and 0.0 < z < MICROWAVE.height_m and 0.0 < into < 0.05:
        _swing(scene, -float(np.arctan2(into, y)))


def _stop_m(gripper: Gripper, scene: Snapshot) -> float:
    """How far apart the fingers are when they have closed on what is between them."""
    for object in scene.objects:
        if around(gripper, scene, object):
            return grasped_width_m(gripper, scene, object)
    return HANDLE_GAP_M if any(_at_handle(gripper, scene, joint) for joint in JOINTS) else 0.0

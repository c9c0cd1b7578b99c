"""Experts without memory: what the scripted skills would do next, from any state of hand and scene.

A skill of `execute` is a motion that begins at its beginning. These say for one control step how the hand
should move, from where it is alone, so that every state that a policy gets into can be labelled. They use
the skills' own grasps, slots and handles.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from datagen.arena.fixtures import CABINET, DOOR, DRAWERS, FIXTURES, PLACES
from datagen.arena.subtasks import Skill
from datagen.skills import drawer as drawers
from datagen.skills.arm import CLOSED, OPEN, Arm
from datagen.skills.execute import Order
from datagen.skills.known_grasp import GRASP_BELOW_TOP_M
from datagen.skills.pick import EMPTY_GAP_M, PALM_M, easiest, half_height_m
from datagen.skills.place import RELEASE_M, RIM_M, RIM_ROOM_M, slot_m, table_point_m
from datagen.skills.rotations import UP, rotation_vector
from datagen.skills.snapshot import Hand, Snapshot

STEP_M, SLOW_STEP_M, TURN_RAD = 0.015, 0.008, 0.036  # at most, in a control step
GAIN = 0.4
HANDLE_GAP_M = 2 * CABINET.handle_radius_m
OPENED_GAP_M = 0.076  # fingers that are further apart have nothing between them and do not close
DEEP_M = 0.02  # between the fingers means: so far from the grasp's height, at most
LIFTED_M = {"table": 0.28, "cabinet": 0.46}  # of the TCP, with something in the hand, by what is below
CABINET_FROM_M = (0.0, 0.15)  # x and y beyond which the cabinet with its drawers is below
REST_M = 0.30  # of the TCP when something has been put down
PUSH_HIGH_M = 0.020  # a vertical bar is pushed as well a little above or below its middle
CARRY_M = 0.12  # what is carried sideways is so high above the floor of its place


@dataclass(frozen=True)
class Advice:
    """For one control step, in the world frame: step_m [3], turn_rad [3] (rotation vector) and the gripper."""

    step_m: np.ndarray
    turn_rad: np.ndarray
    gripper: float


def advise(arm: Arm, hand: Hand, scene: Snapshot, subtask: Order) -> Advice:
    """Raises KeyError for a subtask that has no expert: see `has_expert`."""
    if subtask.skill is Skill.MOVE:
        return _pick(arm, hand, scene, subtask.object)
    if subtask.skill is Skill.PLACE:
        return _place(arm, hand, scene, subtask.object, subtask.target)
    return {Skill.OPEN: _open_drawer, Skill.CLOSE: _close_drawer}[subtask.skill](arm, hand, scene, subtask.target)


def has_expert(subtask: Order) -> bool:
    """Not for pouring, where the right motion depends on what was done before, nor for the door's microwave yet."""
    if subtask.skill is Skill.PLACE:
        return PLACES[subtask.target].frame != DOOR
    return subtask.skill is Skill.MOVE or (subtask.skill is not Skill.POUR and subtask.target in DRAWERS)


def target_m(scene: Snapshot, subtask: Order) -> np.ndarray:
    """[3]: what a picture should be searched for: the object to pick, the slot, or the handle."""
    if subtask.skill is Skill.MOVE:
        return scene.position_m(subtask.object)
    if subtask.skill is Skill.PLACE:
        return _slot_m(scene, subtask.object, subtask.target)
    return handle_m(scene, subtask.target)


def holding(hand: Hand, scene: Snapshot, object: str) -> bool:
    """Whether the fingers have closed on the object."""
    width = grasped_width_m(hand, scene, object)  # askew, a box keeps the fingers further apart
    closed = EMPTY_GAP_M < hand.gap_m <= min(width + 0.008, max(width + 0.0025, OPENED_GAP_M - 0.002))
    return closed and around(hand, scene, object)


def grasped_width_m(hand: Hand, scene: Snapshot, object: str) -> float:
    """How far apart the fingers are when they have closed on an object."""
    extent, side = scene.extent(object), np.abs(scene.rotation(object).T @ hand.rotation[:, 1])
    return 2 * extent.half_m[int(side.argmax())]


def handle_m(scene: Snapshot, drawer: str) -> np.ndarray:
    """[3]: the middle of a drawer's handle."""
    return scene.position_m(drawer) + scene.rotation(drawer) @ np.array(CABINET.handle_in_drawer_m)


def around(hand: Hand, scene: Snapshot, object: str) -> bool:
    """Whether the object is between the fingers, open or closed."""
    x, y, z = hand.rotation.T @ (scene.position_m(object) - hand.position)
    half = float(np.abs(scene.rotation(object).T @ hand.rotation[:, 2]) @ scene.extent(object).half_m)
    deepest = max(0.0, half - GRASP_BELOW_TOP_M) + DEEP_M
    return bool(abs(x) < 0.035 and abs(y) < 0.03 and -DEEP_M < z < deepest)


def _pick(arm: Arm, hand: Hand, scene: Snapshot, object: str) -> Advice:
    if holding(hand, scene, object):
        return _rise(hand, LIFTED_M["cabinet" if _over_cabinet(hand) else "table"], CLOSED)
    grasp = scene.grasp(arm, object)
    if grasp is None:
        return _stay(OPEN)
    position, rotation = grasp
    at = _near(hand, position, 0.02)
    if hand.gap_m < OPENED_GAP_M:  # closing on it; or it was missed, or dropped: open first
        if at and around(hand, scene, object) and hand.gap_m > EMPTY_GAP_M:
            return _stay(CLOSED)
        return Advice(0.2 * STEP_M * UP, np.zeros(3), OPEN)
    return _approach(hand, position, rotation, -UP, 0.16, CLOSED, OPEN)


def _place(arm: Arm, hand: Hand, scene: Snapshot, object: str, place: str) -> Advice:
    floor = _slot_m(scene, object, place)
    height = half_height_m(scene, object)
    resting = scene.position_m(object) - height * UP - floor
    if not holding(hand, scene, object):
        if np.linalg.norm(resting[:2]) < 0.05 and abs(resting[2]) < 0.04:  # it is there
            ready = hand.gap_m > OPENED_GAP_M or not around(hand, scene, object)
            return _rise(hand, max(REST_M, floor[2] + 0.25), OPEN) if ready else _stay(OPEN)
        return _pick(arm, hand, scene, object)
    frame = PLACES[place].frame
    across = scene.rotation(frame)[:, 1] if frame in FIXTURES else np.array([0.0, 1.0, 0.0])
    rotation = _easiest(arm, scene, floor, math.atan2(across[1], across[0]))
    in_hand = hand.rotation.T @ (scene.position_m(object) - hand.position)
    target = floor + (height + RELEASE_M) * UP - rotation @ in_hand
    kind = FIXTURES[frame].kind if frame in FIXTURES else ""
    target[2] = max(target[2], RIM_M[kind] + RIM_ROOM_M - PALM_M if kind in RIM_M else 0.0)
    carry = 0.20 if place.startswith("shelf") else CARRY_M
    return _approach(hand, target, rotation, -UP, carry, OPEN, CLOSED, near=0.012, deep=0.012)


def _open_drawer(arm: Arm, hand: Hand, scene: Snapshot, drawer: str) -> Advice:
    handle, rotation = handle_m(scene, drawer), _ahead(arm, scene, drawers.PITCH_RAD)
    approach = rotation[:, 2]
    gripping = _near(hand, handle, 0.02) and 0.5 * HANDLE_GAP_M < hand.gap_m < HANDLE_GAP_M + 0.008
    if scene.opening(drawer) >= drawers.PULLED_M - 0.012:
        if hand.gap_m < OPENED_GAP_M:
            return _stay(OPEN) if _near(hand, handle, 0.05) else _rise(hand, REST_M, OPEN)
        behind = float((handle - hand.position) @ approach)
        if behind < drawers.BEFORE_M - 0.01 and _near(hand, handle, drawers.BEFORE_M):
            return Advice(-STEP_M * approach, np.zeros(3), OPEN)
        look = _ahead(arm, scene, drawers.LOOK_PITCH_RAD)
        return _towards(hand, handle + drawers.LOOK_FROM_HANDLE_M, look, OPEN)
    if gripping:
        return Advice(np.array([-SLOW_STEP_M, 0.0, 0.0]), _turn(hand, rotation), CLOSED)
    if hand.gap_m < OPENED_GAP_M:
        if _near(hand, handle, 0.02) and hand.gap_m > 0.5 * HANDLE_GAP_M:
            return _stay(CLOSED)
        return Advice(-0.2 * STEP_M * approach, np.zeros(3), OPEN)
    return _approach(hand, handle, rotation, approach, drawers.BEFORE_M, CLOSED, OPEN)


def _close_drawer(arm: Arm, hand: Hand, scene: Snapshot, drawer: str) -> Advice:
    handle, rotation = handle_m(scene, drawer), _ahead(arm, scene, drawers.PITCH_RAD)
    ahead = np.array([1.0, 0.0, 0.0])
    if scene.opening(drawer) <= 0.012:
        if hand.position[0] > handle[0] - 0.06 and _near(hand, handle, 0.12):
            return Advice(-STEP_M * ahead, np.zeros(3), CLOSED)
        return _towards(hand, arm.home_position, arm.rest_rotation, CLOSED)
    end = handle + (scene.opening(drawer) + 0.004) * ahead  # a little into its place: in contact the hand lags behind
    if hand.gap_m > 0.02:
        away = Advice(-0.5 * STEP_M * ahead, np.zeros(3), CLOSED)
        return away if _near(hand, handle, 0.08) else _stay(CLOSED)
    error = end - hand.position
    if abs(error[1]) < 0.014 and abs(error[2]) < PUSH_HIGH_M and hand.position[0] < handle[0] + 0.02:
        step = np.array([0.010, *(GAIN * error[1:])])
        return Advice(step, _turn(hand, rotation), CLOSED)
    start = handle - drawers.PUSH_FROM_M * ahead
    return _approach(hand, start, rotation, ahead, 0.06, CLOSED, CLOSED, aside=0.004)


# ---- parts of them


def _approach(
    hand: Hand,
    position: np.ndarray,
    rotation: np.ndarray,
    axis: np.ndarray,
    before_m: float,
    gripper_there: float,
    on_way: float,
    near: float = 0.009,
    deep: float = 0.007,
    aside: float = 0.008,
) -> Advice:
    """Down a funnel along `axis` to a pose; `gripper_there` once it is `near` it sideways and `deep` enough, `on_way`
    before. Both are what a grasp forgives, so that an actor that is a little off does not hesitate.

    The further the hand is aside, or turned, the further before the pose it aims, by at most `before_m`.
    """
    error, turn = position - hand.position, rotation_vector(rotation @ hand.rotation.T)
    along = float(error @ axis)
    lateral = error - along * axis
    off_m, off_rad = float(np.linalg.norm(lateral)), float(np.linalg.norm(turn))
    before = float(np.clip((off_m - aside) * 4 + (off_rad - 0.08) * 0.4, 0.0, before_m))
    if off_m < near and abs(along) < deep and off_rad < 0.12:
        return _stay(gripper_there)
    ahead = float(np.clip(GAIN * (along - before), -STEP_M, SLOW_STEP_M if along < 0.06 else STEP_M))
    sideways = _limited(GAIN * lateral, STEP_M)
    if before - along > 0.04:  # too far in: back out before going sideways
        sideways *= 0.15
    return Advice(sideways + ahead * axis, _limited(turn, TURN_RAD), on_way)


def _towards(hand: Hand, position: np.ndarray, rotation: np.ndarray, gripper: float) -> Advice:
    """Up first, then straight to a pose."""
    error = position - hand.position
    step = _limited(GAIN * error, STEP_M)
    if error[2] > 0.03:
        step[:2] *= 0.3
    return Advice(step, _turn(hand, rotation), gripper)


def _rise(hand: Hand, height_m: float, gripper: float) -> Advice:
    up = float(np.clip(GAIN * (height_m - hand.position[2]), 0.0, STEP_M))
    return Advice(up * UP, np.zeros(3), gripper)


def _stay(gripper: float) -> Advice:
    return Advice(np.zeros(3), np.zeros(3), gripper)


def _turn(hand: Hand, rotation: np.ndarray) -> np.ndarray:
    return _limited(rotation_vector(rotation @ hand.rotation.T), TURN_RAD)


def _limited(vector: np.ndarray, length: float) -> np.ndarray:
    return vector * min(1.0, length / max(float(np.linalg.norm(vector)), 1e-9))


def _near(hand: Hand, position: np.ndarray, within_m: float) -> bool:
    return bool(np.linalg.norm(hand.position - position) < within_m)


def _over_cabinet(hand: Hand) -> bool:
    return bool(hand.position[0] > CABINET_FROM_M[0] and hand.position[1] > CABINET_FROM_M[1])


def _slot_m(scene: Snapshot, object: str, place: str) -> np.ndarray:
    return table_point_m(scene, object) if place == "table" else slot_m(scene, object, place)


def _easiest(arm: Arm, scene: Snapshot, point: np.ndarray, yaw_rad: float) -> np.ndarray:
    """`pick.easiest`, once for a point: it asks the arm's inverse kinematics."""
    key = f"easiest {np.round(point, 2).tolist()} {yaw_rad:.2f}"
    if key not in scene.facing:
        scene.facing[key] = easiest(arm, point, yaw_rad)
    return scene.facing[key]


def _ahead(arm: Arm, scene: Snapshot, pitch_rad: float) -> np.ndarray:
    """`drawer.nearest_forward`, once for a pitch."""
    key = f"ahead {pitch_rad}"
    if key not in scene.facing:
        scene.facing[key] = drawers.nearest_forward(arm, pitch_rad)
    return scene.facing[key]

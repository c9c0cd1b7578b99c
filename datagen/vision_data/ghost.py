"""The skills' own motions without physics: the arm is where it is commanded to be, what it moves moves along."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from datagen.experts.memoryless.advice import Advice
from datagen.experts.memoryless.hold import HANDLE_GAP_M, OPENED_GAP_M, holding
from datagen.experts.scripted.action_labels import advance
from datagen.experts.scripted.execute import skill
from datagen.experts.scripted.pick import EMPTY_GAP_M, half_height_m
from datagen.experts.scripted.place import slot_m
from datagen.experts.scripted.snapshot import Gripper, Snapshot
from predimem.envs.arena.fixtures import DOOR, MICROWAVE
from predimem.envs.arena.robot.arm import CLOSED, OPEN, Arm
from predimem.envs.arena.robot.rotations import rotation_matrix, rotation_vector
from predimem.envs.arena.subtasks import Skill, Subtask

HANDLE_REACH_M, TOUCH_M = 0.025, 0.02
Moment = tuple[Snapshot, Gripper]


class GhostArm(Arm):
    """An `Arm` that obeys at once: where it is now is `now`."""

    now: Gripper

    def __init__(self, env: Any):
        """env: an `ArenaEnv` of one world with the control mode `pd_joint_pos`."""
        true = Arm(env)
        self.now, self.q = Gripper.of(true), true.q
        super().__init__(env)

    def begin(self, gripper: Gripper) -> bool:
        """Be at a gripper's pose; False where the arm cannot reach it."""
        self.now = gripper.copy()
        self.position, self.rotation = self.now.position.copy(), self.now.rotation
        self.gripper = OPEN if gripper.gap_m > OPENED_GAP_M - 0.002 else CLOSED
        self.q, reached = self.kinematics.solve(gripper.position, gripper.rotation)
        return reached

    @property
    def true_position(self) -> np.ndarray:
        return self.now.position

    @property
    def true_rotation(self) -> np.ndarray:
        return self.now.rotation

    @property
    def true_q(self) -> np.ndarray:
        return self.q

    @property
    def finger_gap_m(self) -> float:
        return self.now.gap_m


def moments(arm: GhostArm, scene: Snapshot, gripper: Gripper, subtask: Subtask) -> Iterator[Moment]:
    """Every control step of the skill of a subtask, from a gripper and a scene, which both stay as they are."""
    scene = scene.copy()
    if not arm.begin(gripper):
        return
    for _ in skill(arm, scene, subtask):
        before = arm.now
        held = next((o for o in scene.objects if holding(before, scene, o)), "")
        turn = rotation_vector(arm.rotation @ before.rotation.T)
        arm.now = advance(before, scene, Advice(arm.position - before.position, turn, arm.gripper))
        if held and arm.gripper == CLOSED:
            arm.now.gap_m = before.gap_m  # by `advance` a quick step leaves behind what is held
        _move_door(scene, before, arm.now, arm.gripper)
        if held and arm.gripper == OPEN and subtask.skill is Skill.PLACE:
            stand_on(scene, held, subtask.target)
        yield scene.copy(), arm.now.copy()


def door_point_m(scene: Snapshot, point_m: tuple[float, float, float]) -> np.ndarray:
    """[3]: a point of the microwave door's frame in the world."""
    angle = scene.opening(DOOR)
    cos, sin = math.cos(angle), math.sin(angle)
    x, y, z = point_m
    return scene.position_m("door") + np.array([cos * x - sin * y, sin * x + cos * y, z])


def stand_on(scene: Snapshot, object: str, place: str) -> None:
    """Put an object down where it is: straight on the side that it is nearest to, on the floor of a place."""
    position, rotation = scene.poses[object]
    vertical = int(np.abs(rotation[2]).argmax())
    up = np.array([0.0, 0.0, math.copysign(1.0, rotation[2, vertical])])
    axis = np.cross(rotation[:, vertical], up)
    sine, cosine = float(np.linalg.norm(axis)), float(rotation[:, vertical] @ up)
    turn = rotation_matrix(axis / max(sine, 1e-9) * math.atan2(sine, cosine))
    scene.put(object, position, turn @ rotation)
    floor_m = slot_m(scene, object, place)[2] if place != "table" else 0.0
    scene.put(object, np.array([*position[:2], floor_m + half_height_m(scene, object) + 0.001]), turn @ rotation)


def _move_door(scene: Snapshot, before: Gripper, after: Gripper, command: float) -> None:
    """The door follows closed fingers at its handle, and gives way to closed fingers that push its outside."""
    if command != CLOSED:
        return
    hinge = scene.position_m("door")
    (x, y, z) = after.position - hinge
    handle = door_point_m(scene, MICROWAVE.handle_in_door_m)
    if before.gap_m > EMPTY_GAP_M and np.linalg.norm(before.position - handle) < HANDLE_REACH_M:
        after.gap_m = max(after.gap_m, HANDLE_GAP_M)
        bar_x, bar_y, _ = MICROWAVE.handle_in_door_m
        angle = math.atan2(y, x) - math.atan2(bar_y, bar_x)
        scene.openings[DOOR] = float(np.clip(_turned(angle), 0.0, MICROWAVE.limit_rad))
        return
    reach = math.hypot(x, y)
    if after.gap_m > EMPTY_GAP_M or not (TOUCH_M < reach < MICROWAVE.width_m and 0 < z < MICROWAVE.height_m + 0.03):
        return
    angle = _turned(math.atan2(y, x) - math.atan2(math.sqrt(reach**2 - TOUCH_M**2), -TOUCH_M))
    if 0.0 < scene.opening(DOOR) - angle < 0.3:
        scene.openings[DOOR] = max(0.0, angle)


def _turned(angle_rad: float) -> float:
    """The same angle in -pi/2 .. 3 pi/2."""
    return (angle_rad + math.pi / 2) % (2 * math.pi) - math.pi / 2

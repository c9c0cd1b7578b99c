"""Post-conditions: what has to be seen, or felt by the gripper, after a skill (RoboMemArena, §3.2, stage 2)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from datagen.perception.scene import PerceivedScene
from predimem.envs.arena.fixtures import DOOR, JOINTS, PLACES
from predimem.envs.arena.predicates import (
    DOOR_CLOSED_RAD,
    DOOR_OPEN_RAD,
    DRAWER_CLOSED_M,
    DRAWER_OPEN_M,
    POUR_COS,
    POUR_STEPS,
    UPRIGHT_COS,
)
from predimem.envs.arena.robot.arm import Arm
from predimem.envs.arena.subtasks import Skill

IN_HAND_M = 0.10  # a held object is seen this near to the TCP at most
DOOR_ERROR_RAD = 0.015  # the door's angle is seen too large by this


@dataclass(frozen=True)
class Order:
    """One step with its references resolved. object: what is held or picked; "" for Open and Close."""

    skill: Skill
    target: str
    object: str = ""


class PourWatch:
    """Counts pours by what the gripper feels: how far it has tilted what it holds, and for how long."""

    def __init__(self) -> None:
        self._steps = 0
        self.pours = 0

    def follow(self, scene: PerceivedScene) -> None:
        """To be called after every control step."""
        tilted = bool(scene.held) and scene.rotation(scene.held)[2, 2] <= POUR_COS
        self._steps = self._steps + 1 if tilted else 0
        self.pours += self._steps == POUR_STEPS


def unfulfilled(order: Order, arm: Arm, scene: PerceivedScene, pours: int) -> str:
    """What speaks against an order having been done; empty if nothing does.

    scene: after a look. pours: how often was poured while the order was carried out.
    """
    if order.skill is Skill.MOVE:
        return _not_in_gripper(order.object, arm, scene)
    if order.skill is Skill.PLACE:
        return _not_in_place(order.object, order.target, scene)
    if order.skill is Skill.POUR:
        return _not_poured(order.object, scene, pours)
    return _not_moved(order, scene)


def _not_in_gripper(object: str, arm: Arm, scene: PerceivedScene) -> str:
    if scene.held != object:
        return "not between the fingers"
    points = scene.points_m(object)
    if object in scene.seen and np.linalg.norm(np.median(points, axis=0) - arm.true_position) > IN_HAND_M:
        return "seen elsewhere than in the gripper"
    return ""


def _not_in_place(object: str, place: str, scene: PerceivedScene) -> str:
    if scene.held == object:
        return "still in the gripper"
    if not scene.inside(object, place):  # where it was seen, or, out of sight, where it was let go
        return "seen elsewhere" if object in scene.seen else "let go elsewhere"
    if object not in scene.seen and PLACES[place].frame not in JOINTS:
        return "out of sight"
    return ""


def _not_poured(object: str, scene: PerceivedScene, pours: int) -> str:
    if scene.held != object:
        return "lost from the gripper"
    if pours == 0:
        return "not tilted far enough"
    return "" if scene.rotation(object)[2, 2] >= UPRIGHT_COS else "not upright again"


def _not_moved(order: Order, scene: PerceivedScene) -> str:
    if order.target in scene.unseen_joints:
        return "out of sight"
    opening, door = scene.opening(order.target), order.target == DOOR
    if order.skill is Skill.OPEN:
        return "" if opening >= (DOOR_OPEN_RAD if door else DRAWER_OPEN_M) else "not open"
    return "" if opening <= (DOOR_CLOSED_RAD + DOOR_ERROR_RAD if door else DRAWER_CLOSED_M) else "not shut"

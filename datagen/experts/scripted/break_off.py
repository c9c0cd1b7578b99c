"""Leaving a motion that was cut short, so that another can begin from where the gripper is."""

from __future__ import annotations

import numpy as np

from datagen.experts.scripted import door, drawer, insert
from datagen.experts.scripted.execute import Order
from datagen.experts.scripted.pick import holds
from datagen.experts.scripted.scene import Scene
from predimem.envs.arena.fixtures import DOOR, PLACES
from predimem.envs.arena.robot.arm import OPEN, Arm, Motion
from predimem.envs.arena.robot.rotations import UP, rotation_matrix
from predimem.envs.arena.subtasks import Skill

FREE_M = 0.30  # another motion begins with the gripper this high
SLOW_M_S = 0.15


def break_off(arm: Arm, scene: Scene, order: Order) -> Motion:
    """Out of whatever the skill of `order` was at, and up to `FREE_M`.

    What the gripper has lifted stays in it, a bottle is turned upright; a handle is let go of.
    """
    if order.skill is Skill.POUR and holds(arm, scene, order.object):
        yield from arm.move(arm.position, _upright(arm, scene, order.object))
    elif order.skill is Skill.OPEN:
        yield from arm.grip(OPEN, steps=6)
        yield from arm.move(arm.position - drawer.BEFORE_M * arm.rotation[:, 2], speed_m_s=SLOW_M_S, settle=0)
    elif order.skill is Skill.CLOSE:
        back = door.RETREAT_M if order.target == DOOR else drawer.RETREAT_M
        yield from arm.move(arm.position - [back, 0.0, 0.0], speed_m_s=SLOW_M_S, settle=0)
    elif order.skill is Skill.PLACE and PLACES[order.target].frame == DOOR:
        outside = float(scene.position_m(DOOR)[0]) - insert.BEFORE_M
        if arm.position[0] > outside:
            yield from arm.move(np.array([outside, *arm.position[1:]]), speed_m_s=insert.LEAVE_M_S, settle=0)
    yield from arm.rise(FREE_M)


def _upright(arm: Arm, scene: Scene, object: str) -> np.ndarray:
    """[3, 3]: the gripper's rotation at which the held object stands upright, by the shortest turn."""
    axis = scene.rotation(object) @ UP
    turn = np.cross(axis, UP)
    sine, cosine = float(np.linalg.norm(turn)), float(axis @ UP)
    if sine < 1e-6:
        return arm.rotation
    return rotation_matrix(np.arctan2(sine, cosine) * turn / sine) @ arm.rotation

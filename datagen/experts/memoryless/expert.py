"""The memoryless expert says what to do next for a subtask, from the present state of gripper and scene alone.

A skill of `execute` is a motion that begins at its beginning. This says for one control step how the gripper
should move, so that every state that a policy gets into can be labelled. It uses the skills' own grasps, slots
and handles.
"""

from __future__ import annotations

import numpy as np

from datagen.experts.memoryless.advice import Advice
from datagen.experts.memoryless.door import close_door, door_handle_m, open_door
from datagen.experts.memoryless.drawer import close_drawer, handle_m, open_drawer
from datagen.experts.memoryless.hold import holding
from datagen.experts.memoryless.pick_place import floor_m, pick, place, rests
from datagen.experts.memoryless.pour import pour
from datagen.experts.scripted.execute import Order
from datagen.experts.scripted.snapshot import Gripper, Snapshot
from predimem.envs.arena.fixtures import DOOR
from predimem.envs.arena.robot.arm import Arm
from predimem.envs.arena.subtasks import Skill


def advise(arm: Arm, gripper: Gripper, scene: Snapshot, subtask: Order) -> Advice:
    object, target = subtask.object, subtask.target
    if subtask.skill is Skill.MOVE or fetches(gripper, scene, subtask):
        return pick(arm, gripper, scene, object)
    if subtask.skill is Skill.PLACE:
        return place(arm, gripper, scene, object, target)
    if subtask.skill is Skill.POUR:
        return pour(arm, gripper, scene, object, target)
    if target == DOOR:
        return (open_door if subtask.skill is Skill.OPEN else close_door)(arm, gripper, scene)
    return (open_drawer if subtask.skill is Skill.OPEN else close_drawer)(arm, gripper, scene, target)


def fetches(gripper: Gripper, scene: Snapshot, subtask: Order) -> bool:
    """Whether `advise` picks up the object that is to be placed or poured from, because it is not held yet."""
    if subtask.skill not in (Skill.PLACE, Skill.POUR) or holding(gripper, scene, subtask.object):
        return False
    return subtask.skill is Skill.POUR or not rests(scene, subtask.object, subtask.target)


def target_m(gripper: Gripper, scene: Snapshot, subtask: Order) -> np.ndarray:
    """[3]: where the gripper has to go, and what an image should be searched for: the object to pick, also where that
    is to be placed or poured from and is not held, then the slot or what is poured over; or the handle."""
    object, target = subtask.object, subtask.target
    if subtask.skill is Skill.MOVE:
        return scene.position_m(target)
    if fetches(gripper, scene, subtask):
        return scene.position_m(object)
    if subtask.skill is Skill.POUR:
        return scene.position_m(target)
    if subtask.skill is Skill.PLACE:
        return floor_m(scene, object, target)
    return door_handle_m(scene) if target == DOOR else handle_m(scene, target)

"""From a subtask to the skill that does it."""

from __future__ import annotations

from typing import Any, Protocol

from datagen.experts.scripted.door import close_door, open_door
from datagen.experts.scripted.drawer import close_drawer, open_drawer
from datagen.experts.scripted.insert import place_in_drawer, place_in_microwave
from datagen.experts.scripted.pick import holds, pick
from datagen.experts.scripted.place import place
from datagen.experts.scripted.pour import pour
from datagen.experts.scripted.scene import Scene
from predimem.envs.arena.fixtures import DOOR, DRAWERS, PLACES
from predimem.envs.arena.robot.arm import Arm, Motion
from predimem.envs.arena.subtasks import Skill


class Order(Protocol):
    """A `Subtask`, or anything else that says what is to be done with what."""

    @property
    def skill(self) -> Skill: ...

    @property
    def target(self) -> str: ...

    @property
    def object(self) -> str: ...


def skill(arm: Arm, scene: Scene, subtask: Order) -> Motion:
    """The motion for a subtask. Place and Pour begin by picking their object up, where the gripper does not hold it."""
    target = subtask.target
    if subtask.skill in (Skill.PLACE, Skill.POUR) and not holds(arm, scene, subtask.object):
        yield from pick(arm, scene, subtask.object)
    if subtask.skill is Skill.MOVE:
        yield from pick(arm, scene, target)
    elif subtask.skill is Skill.POUR:
        yield from pour(arm, scene, subtask.object, target)
    elif subtask.skill is Skill.OPEN:
        yield from open_door(arm, scene) if target == DOOR else open_drawer(arm, scene, target)
    elif subtask.skill is Skill.CLOSE:
        yield from close_door(arm, scene) if target == DOOR else close_drawer(arm, scene, target)
    elif PLACES[target].frame in DRAWERS:
        yield from place_in_drawer(arm, scene, subtask.object, target)
    elif PLACES[target].frame == DOOR:
        yield from place_in_microwave(arm, scene, subtask.object, target)
    else:
        yield from place(arm, scene, subtask.object, target)


def run(env: Any, arm: Arm, motion: Motion) -> int:
    """Play a motion to its end in an `ArenaEnv`; returns how many control steps it took."""
    steps = 0
    for _ in motion:
        env.step(arm.action())
        steps += 1
    return steps

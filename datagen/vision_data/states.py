"""Which states of a scene are shown: as subtasks leave it, in the middle of a skill's motion, or anything anywhere."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from datagen.actor_data.starts import draw_gripper, leave
from datagen.experts.scripted.door import OPENED_RAD
from datagen.experts.scripted.drawer import PULLED_M
from datagen.experts.scripted.place import room_m, slot_m
from datagen.experts.scripted.snapshot import Snapshot
from datagen.vision_data.ghost import GhostArm, Moment, moments, stand_on
from predimem.envs.arena.fixtures import DOOR, DRAWERS, PLACES, SPAWN_HIGH_M, SPAWN_LOW_M
from predimem.envs.arena.objects import OBJECTS
from predimem.envs.arena.robot.rotations import UP, rotation_matrix
from predimem.envs.arena.subtasks import Skill, Subtask
from predimem.envs.arena.task import Task

PLACED_SPREAD_M = 0.006
OF_A_MOTION = 3  # frames at most: finding a motion takes longer than an image
MOVED_SHARE, OPEN_SHARE, HALF_OPEN_SHARE = 0.6, 0.6, 0.25  # of scrambled things, joints, and open joints
ROOM_M, TRIES = 0.09, 30  # between things on the table


def as_left(scene: Snapshot, subtasks: Sequence[Subtask], rng: np.random.Generator) -> str:
    """Change the scene as subtasks that were done leave it; returns what the gripper holds then, or ""."""
    held = ""
    for subtask in subtasks:
        if subtask.skill is Skill.PLACE:
            set_down(scene, subtask.object, subtask.target, rng)
            held = ""
        elif subtask.skill is not Skill.POUR:
            held = leave(scene, (subtask,), rng)
    return held


def set_down(scene: Snapshot, object: str, place: str, rng: np.random.Generator) -> None:
    """Put an object into a free slot of a place, as the skills do: in the microwave it stands on a side."""
    if place == "table":
        point, yaw = _free_on_table(scene, object, rng), rng.uniform(-np.pi, np.pi)
    else:
        point = slot_m(scene, object, place)
        yaw = rng.integers(2) * np.pi + rng.normal(0.0, 0.1) + np.pi / 2 * (rng.random() < 0.3)
    rotation = rotation_matrix(yaw * UP)
    if PLACES[place].frame == DOOR:  # its top towards the robot, its narrow side across
        side = rng.choice([-1.0, 1.0])
        rotation = rotation_matrix(rng.normal(0.0, 0.06) * UP) @ np.array([[0, 0, -1.0], [side, 0, 0], [0, -side, 0]])
    spread = np.array([*rng.normal(0.0, PLACED_SPREAD_M, 2), 0.0])
    scene.put(object, point + spread + [0.0, 0.0, 0.1], rotation)
    stand_on(scene, object, place)


def scramble(scene: Snapshot, task: Task, rng: np.random.Generator) -> None:
    """Things in any of the task's places, and joints open, whatever its story is."""
    places = sorted({"table"} | {place for v in task.variants for place in (*v.start.values(), *_targets(v.subtasks))})
    for object in rng.permutation(scene.objects):
        fitting = [p for p in places if PLACES[p].frame not in (*DRAWERS, DOOR) or OBJECTS[object].form == "box"]
        if rng.random() < MOVED_SHARE:
            set_down(scene, str(object), str(rng.choice(fitting)), rng)
    drawer = str(rng.choice(DRAWERS))
    for joint in DRAWERS:
        opened = joint == drawer and rng.random() < OPEN_SHARE
        scene.slide(joint, _opened(PULLED_M, rng) if opened else 0.0)
    scene.openings[DOOR] = _opened(OPENED_RAD, rng) if rng.random() < OPEN_SHARE else 0.0


def of_motion(
    scene: Snapshot, arm: GhostArm, held: str, before: Subtask | None, subtask: Subtask, rng: np.random.Generator
) -> list[Moment]:
    """Some control steps of a skill's motion, drawn with equal chances."""
    gripper = draw_gripper(scene, arm, held, before, rng)
    seen = list(moments(arm, scene, gripper, subtask))
    chosen = rng.permutation(len(seen))[:OF_A_MOTION]
    return [seen[i] for i in chosen]


def _targets(subtasks: Sequence[Subtask]) -> list[str]:
    return [s.target for s in subtasks if s.skill is Skill.PLACE]


def _opened(full: float, rng: np.random.Generator) -> float:
    return full * (rng.uniform(0.1, 1.0) if rng.random() < HALF_OPEN_SHARE else rng.uniform(0.93, 1.05))


def _free_on_table(scene: Snapshot, object: str, rng: np.random.Generator) -> np.ndarray:
    """[3]: a point with room where things start; the last one tried if there is none."""
    point = np.zeros(3)
    for _ in range(TRIES):
        point[:2] = rng.uniform(SPAWN_LOW_M, SPAWN_HIGH_M)
        if room_m(scene, object, point) > ROOM_M:
            break
    return point.copy()

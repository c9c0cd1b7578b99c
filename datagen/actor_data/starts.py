"""States to begin from: the scene as earlier subtasks leave it, the gripper anywhere, set without physics."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from datagen.experts.memoryless.advice import Advice
from datagen.experts.memoryless.drawer import handle_m
from datagen.experts.memoryless.expert import advise
from datagen.experts.memoryless.hold import PAD_M, corners_m, grasped_width_m, holding
from datagen.experts.scripted.action_labels import action_of, advance
from datagen.experts.scripted.door import OPENED_RAD
from datagen.experts.scripted.drawer import LOOK_FROM_HANDLE_M, LOOK_PITCH_RAD, PULLED_M, nearest_forward
from datagen.experts.scripted.pick import half_height_m
from datagen.experts.scripted.place import slot_m, table_point_m
from datagen.experts.scripted.snapshot import OPEN_GAP_M, Gripper, Snapshot
from predimem.envs.arena.fixtures import DOOR, DRAWERS, KITCHEN, PLACES
from predimem.envs.arena.robot.arm import Arm
from predimem.envs.arena.robot.rotations import UP, rotation_matrix, top_down
from predimem.envs.arena.subtasks import Skill, Subtask
from predimem.envs.arena.tasks import TASKS

WORKSPACE_LOW_M, WORKSPACE_HIGH_M = (-0.36, -0.28, 0.16), (0.02, 0.32, 0.46)  # of the TCP
PULLED_SPREAD_M, PLACED_SPREAD_M, GRASP_SPREAD_M = 0.012, 0.008, 0.004
LATE_SHARE = 0.7  # of independent frames come from within the motion
LONGEST_STEPS = 130
GRIP_SHARE, GRIP_STEPS = 0.4, 10  # of those, so many are from so near to where the fingers begin to open or close
TRIED_SHARE = 0.3  # of what is to be opened or shut stands between, as an attempt that broke off leaves it,
TRIED_LEFT = 0.09  # and so much of the way is left at least: nearer no image shows whether it has to be tried again
AJAR_M, AJAR_RAD = 0.002, 0.008  # spread of what is shut, far within what counts as that
ASKEW_SHARE, ASKEW_RAD, ASKEW_TRIES = 0.35, 0.6, 3  # of what is held; less where it would be too wide
LOST_SHARE = (
    0.15  # of what should be in the gripper was never picked up: whoever is to place it has to pick it up first
)
MISSED_SHARE = 0.4  # of what is to be picked up: the fingers have closed beside it, and hold nothing
MISSED_OFF_M, MISSED_LOW_M, MISSED_HIGH_M = 0.02, 0.06, 0.2  # beside and above it


def draw_stage(subtasks: Sequence[Subtask], skills: Sequence[str], rng: np.random.Generator) -> int | None:
    """The subtask to begin with, of one of `skills`; None if there is none. What few episodes ask for is drawn more
    often: drawers are opened in every second episode, butter is put into the top one in a thirtieth."""
    stages = [i for i, s in enumerate(subtasks) if s.skill.value in skills]
    if not stages:
        return None
    weights = 1.0 / np.array([_times_an_episode().get(subtasks[i].label, 1.0) for i in stages])
    return int(rng.choice(stages, p=weights / weights.sum()))


@cache
def _times_an_episode() -> dict[str, float]:
    """Label -> how often it is asked for in an episode of the 26 tasks, on average."""
    times: defaultdict[str, float] = defaultdict(float)
    for task in TASKS:
        for variant in task.variants:
            for subtask in variant.subtasks:
                times[subtask.label] += 1.0 / len(task.variants) / len(TASKS)
    return dict(times)


def leave(scene: Snapshot, subtasks: Sequence[Subtask], rng: np.random.Generator) -> str:
    """Change the scene as subtasks that were done leave it; returns what the gripper holds then, or ""."""
    held = ""
    for subtask in subtasks:
        if subtask.skill is Skill.MOVE:
            held = subtask.object
        elif subtask.skill is Skill.PLACE:
            _set_down(scene, subtask.object, subtask.target, rng)
            held = ""
        elif subtask.skill is Skill.OPEN:
            _open(scene, subtask.target, rng)
        elif subtask.skill is Skill.CLOSE:
            _shut(scene, subtask.target, rng)
    return held


def try_before(scene: Snapshot, gripper: Gripper, subtask: Subtask, rng: np.random.Generator) -> None:
    """Now and then leave what `subtask` opens or shuts somewhere between, mostly near where it shall go."""
    if subtask.skill not in (Skill.OPEN, Skill.CLOSE) or rng.random() > TRIED_SHARE:
        return
    left = TRIED_LEFT + (1 - TRIED_LEFT) * rng.random() ** 2
    share = left if subtask.skill is Skill.CLOSE else 1 - left
    _set(scene, subtask.target, share * (PULLED_M if subtask.target in DRAWERS else OPENED_RAD))
    if subtask.skill is Skill.CLOSE and rng.random() < 0.5:
        gripper.gap_m = 0.0  # as it pushes


def miss(gripper: Gripper, scene: Snapshot, subtask: Subtask, rng: np.random.Generator) -> None:
    """Now and then close the fingers on nothing above what `subtask` picks up, as a grasp that missed leaves them. An
    actor that has not seen it keeps them closed, as after a grasp that held."""
    if not subtask.object or any(holding(gripper, scene, o) for o in scene.objects) or rng.random() > MISSED_SHARE:
        return
    above_m = (*rng.normal(0.0, MISSED_OFF_M, 2), rng.uniform(MISSED_LOW_M, MISSED_HIGH_M))
    gripper.position = scene.position_m(subtask.object) + above_m
    gripper.gap_m = 0.0


def draw_gripper(scene: Snapshot, arm: Arm, held: str, before: Subtask | None, rng: np.random.Generator) -> Gripper:
    """Where the subtask `before` may have left the gripper, or anywhere; what it holds is put into it, or was lost."""
    if held and rng.random() < LOST_SHARE:
        held = ""
    turn = rotation_matrix(rng.normal(0.0, (0.06, 0.06, 0.35)))
    position, rotation = rng.uniform(WORKSPACE_LOW_M, WORKSPACE_HIGH_M), turn @ arm.rest_rotation
    gap_m = OPEN_GAP_M
    if not held and rng.random() < 0.5:
        position, rotation = arm.home_position + rng.normal(0.0, 0.02, 3), turn @ arm.rest_rotation
        if before is not None and before.skill is Skill.OPEN and before.target in DRAWERS:
            position = handle_m(scene, before.target) + LOOK_FROM_HANDLE_M + rng.normal(0.0, 0.02, 3)
            rotation = nearest_forward(arm, LOOK_PITCH_RAD)
        elif before is not None and before.skill is Skill.CLOSE:
            gap_m = 0.0
    gripper = Gripper(position, rotation, gap_m)
    if held:
        _into_gripper(scene, arm, gripper, held, rng)
    return gripper


def wander(gripper: Gripper, scene: Snapshot, arm: Arm, subtask: Subtask, rng: np.random.Generator) -> Gripper:
    """Some steps of the expert, with noise, without physics; then a little off its way. `scene` moves along."""
    if rng.random() > LATE_SHARE:
        return gripper
    for _ in range(_draw_steps(gripper, scene, arm, subtask, rng)):
        advice = advise(arm, gripper, scene, subtask)
        noisy = Advice(advice.step_m + rng.normal(0.0, 0.001, 3), advice.turn_rad, advice.gripper)
        gripper = advance(gripper, scene, noisy)
    if gripper.gap_m < 0.9 * OPEN_GAP_M and not any(holding(gripper, scene, o) for o in scene.objects):
        return gripper  # at a handle, or pushing
    off_m = rng.normal(0.0, 0.01, 3) * rng.integers(0, 3)
    before, after = gripper, gripper.moved(off_m, rng.normal(0.0, 0.04, 3))
    after.position[2] = max(after.position[2], 0.012, before.position[2] - 0.005)
    for object in scene.objects:
        if holding(before, scene, object):
            scene.carry(object, before, after)
    return after


def hold_askew(gripper: Gripper, scene: Snapshot, rng: np.random.Generator) -> None:
    """Now and then turn what the gripper holds between the fingers, which then stand at its corners, as where an actor
    closed them a little askew. An actor that has not seen it takes it for a grasp that missed."""
    held = next((name for name in scene.objects if holding(gripper, scene, name)), "")
    if not held or scene.extent(held).round or rng.random() > ASKEW_SHARE:
        return
    straight, gap_m = scene.rotation(held), gripper.gap_m
    turn_rad = rng.uniform(-ASKEW_RAD, ASKEW_RAD)
    for _ in range(ASKEW_TRIES):
        turned = rotation_matrix(turn_rad * gripper.rotation[:, 2]) @ straight
        scene.put(held, scene.position_m(held), turned)
        gripper.gap_m = corners_m(gripper, scene, held) - PAD_M - abs(rng.normal(0.0, 0.001))
        if holding(gripper, scene, held):
            return
        turn_rad /= 2
    scene.put(held, scene.position_m(held), straight)
    gripper.gap_m = gap_m


def _draw_steps(gripper: Gripper, scene: Snapshot, arm: Arm, subtask: Subtask, rng: np.random.Generator) -> int:
    """How long to follow the expert: any time, or until about when it first grips or lets go, which takes a few steps
    of a hundred."""
    steps = int(rng.integers(LONGEST_STEPS))
    if rng.random() > GRIP_SHARE:
        return steps
    scene = scene.copy()
    opened = advise(arm, gripper, scene, subtask).gripper
    for step in range(LONGEST_STEPS):
        advice = advise(arm, gripper, scene, subtask)
        if advice.gripper != opened:
            return max(0, step + int(rng.integers(-GRIP_STEPS, GRIP_STEPS + 1)))
        gripper = advance(gripper, scene, advice)
    return steps


def write(env: Any, arm: Arm, scene: Snapshot, gripper: Gripper) -> bool:
    """Make it so in the simulation, everything at rest; False, and nothing is changed, where the arm cannot reach."""
    import sapien
    import torch
    from transforms3d.quaternions import mat2quat

    from predimem.envs.arena.scene.mats import carry_mats

    q, reached = arm.kinematics.solve(gripper.position, gripper.rotation)
    if not reached:
        return False
    qpos = torch.tensor(np.r_[q, gripper.gap_m / 2, gripper.gap_m / 2][None], dtype=torch.float32)
    robot = env.agent.robot
    robot.set_qpos(qpos)
    robot.set_qvel(torch.zeros_like(qpos))
    robot.set_joint_drive_targets(qpos, robot.active_joints)
    for fixture in (env.fixtures[name] for name in KITCHEN):
        names = [joint.name for joint in fixture.active_joints]
        opening = [scene.openings[DOOR if joint == "door" else joint] for joint in names]
        fixture.set_qpos(torch.tensor([opening], dtype=torch.float32))
        fixture.set_qvel(torch.zeros(1, len(names)))
    for name in scene.objects:
        position, rotation = scene.poses[name]
        env.objects[name].set_pose(sapien.Pose(list(position), list(mat2quat(rotation))))
        env.objects[name].set_linear_velocity(torch.zeros(1, 3))
        env.objects[name].set_angular_velocity(torch.zeros(1, 3))
    carry_mats(env)
    return True


def settle(driver: Any, hold: float, steps: int = 4) -> None:
    """A few control steps of physics without moving, the gripper commanded to `hold`."""
    action = action_of(Advice(np.zeros(3), np.zeros(3), hold))
    for _ in range(steps):
        driver.step(action)


def _open(scene: Snapshot, joint: str, rng: np.random.Generator) -> None:
    pulled = joint in DRAWERS
    _set(
        scene, joint, PULLED_M - abs(rng.normal(0.0, PULLED_SPREAD_M)) if pulled else OPENED_RAD + rng.normal(0.0, 0.03)
    )


def _shut(scene: Snapshot, joint: str, rng: np.random.Generator) -> None:
    _set(scene, joint, abs(rng.normal(0.0, AJAR_M if joint in DRAWERS else AJAR_RAD)))


def _set(scene: Snapshot, joint: str, opening: float) -> None:
    if joint in DRAWERS:
        scene.slide(joint, opening)
    else:
        scene.openings[joint] = opening


def _set_down(scene: Snapshot, object: str, place: str, rng: np.random.Generator) -> None:
    floor = table_point_m(scene, object) if place == "table" else slot_m(scene, object, place)
    yaw = rotation_matrix((rng.integers(2) * np.pi + rng.normal(0.0, 0.1)) * UP)
    scene.put(object, floor, yaw)
    inside = PLACES[place].frame == DOOR  # there things stand on a side; so much is not modelled here
    height = scene.extent(object).half_m[1] if inside else half_height_m(scene, object)
    spread = np.array([*rng.normal(0.0, PLACED_SPREAD_M, 2), 0.001])
    scene.put(object, floor + height * UP + spread, yaw)


def _into_gripper(scene: Snapshot, arm: Arm, gripper: Gripper, object: str, rng: np.random.Generator) -> None:
    """As `known_grasp` would have grasped it where it stands."""
    grasp = scene.grasp(arm, object)
    if grasp is None:
        raise ValueError(f"nothing can grasp {object} where it stands")
    position, rotation = grasp
    gripper.rotation = top_down(rng.uniform(-0.8, 0.8) + np.pi / 2) if rng.random() < 0.3 else rotation
    gripper.position[2] = max(gripper.position[2], 0.24)
    offset = rotation.T @ (scene.position_m(object) - position) + rng.normal(0.0, GRASP_SPREAD_M, 3) * [1, 0, 1]
    scene.put(
        object, gripper.position + gripper.rotation @ offset, gripper.rotation @ rotation.T @ scene.rotation(object)
    )
    gripper.gap_m = grasped_width_m(gripper, scene, object)

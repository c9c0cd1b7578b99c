"""Motions without physics move what the real ones move."""

from __future__ import annotations

import numpy as np
import pytest

from datagen.experts.memoryless.hold import holding
from datagen.experts.scripted.drawer import PULLED_M
from datagen.experts.scripted.snapshot import Gripper, Snapshot
from datagen.vision_data.ghost import GhostArm, Moment, moments
from datagen.vision_data.states import as_left, of_motion, scramble
from predimem.envs.arena.fixtures import DOOR, PLACES
from predimem.envs.arena.scene.environment import ArenaEnv
from predimem.envs.arena.subtasks import Skill
from tests.datagen.experts import arena


def home(arm: GhostArm) -> Gripper:
    return Gripper(arm.home_position, arm.rest_rotation, 0.08)


def last(env: ArenaEnv, done: int, motions: int = 1) -> Moment:
    """The scene and the gripper after `motions` subtasks from `done` on, those before as they leave it."""
    arm, scene, subtasks = GhostArm(env), Snapshot.of(env), env.variant().subtasks
    assert as_left(scene, subtasks[:done], np.random.default_rng(0)) == ""
    state = scene, home(arm)
    for subtask in subtasks[done : done + motions]:
        state = list(moments(arm, *state, subtask))[-1]
    return state


def test_the_door_follows_the_gripper_and_gives_way_to_it() -> None:
    env = arena(20, 60_000)
    opened, _ = last(env, 0)
    assert opened.opening(DOOR) > 1.5
    shut, _ = last(env, 5)
    assert shut.opening(DOOR) < 0.1
    env.close()


def test_a_drawer_is_pulled_and_pushed() -> None:
    env = arena(14, 60_000)
    drawer = env.variant().subtasks[0].target
    opened, _ = last(env, 0)
    assert opened.opening(drawer) == pytest.approx(PULLED_M, abs=0.02)
    shut, _ = last(env, 3)
    assert shut.opening(drawer) < 0.02
    env.close()


def test_a_bottle_stays_in_the_gripper_while_it_pours() -> None:
    env = arena(7, 60_000)
    arm, fresh, subtasks = GhostArm(env), Snapshot.of(env), env.variant().subtasks
    pour = next(i for i, s in enumerate(subtasks) if s.skill is Skill.POUR)
    picked = list(moments(arm, fresh, home(arm), subtasks[pour - 1]))[-1]
    tilts = []
    for scene, gripper in moments(arm, *picked, subtasks[pour]):
        assert holding(gripper, scene, subtasks[pour].object)
        tilts.append(float(scene.rotation(subtasks[pour].object)[2, 2]))
    assert min(tilts) < 0.2 and tilts[-1] > 0.9
    env.close()


def test_what_is_put_into_the_microwave_stands_in_it() -> None:
    env = arena(20, 60_000)
    scene, _ = last(env, 1, motions=2)
    subtask = env.variant().subtasks[2]
    floor = scene.position_m("microwave") + PLACES[subtask.target].centre_m
    offset = np.abs(scene.position_m(subtask.object) - floor)
    assert offset[0] < PLACES[subtask.target].half_m[0] and offset[1] < PLACES[subtask.target].half_m[1]
    assert offset[2] < 0.05
    assert np.abs(scene.rotation(subtask.object)).max(0) == pytest.approx(np.ones(3), abs=0.08)
    env.close()


def test_scrambled_things_are_in_places_of_the_task() -> None:
    env = arena(4, 60_001)
    fresh, seen = Snapshot.of(env), set()
    for seed in range(12):
        scene = fresh.copy()
        scramble(scene, env.task, np.random.default_rng(seed))
        seen |= {drawer for drawer in ("top_drawer", "middle_drawer", "bottom_drawer") if scene.opening(drawer) > 0.1}
        assert all(scene.position_m(o)[2] > 0 for o in scene.objects)
    assert len(seen) == 3
    arm, subtask = GhostArm(env), env.variant().subtasks[0]
    assert 0 < len(of_motion(fresh, arm, "", None, subtask, np.random.default_rng(0))) <= 3
    env.close()

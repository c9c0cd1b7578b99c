"""Labelled images become episodes, and starts are what earlier subtasks leave."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from datagen.actor_data.config import ActorDataConfig
from datagen.actor_data.labelled import OTHERS, Labelled, episode_of, motion_of, others, possible, project
from datagen.actor_data.rollouts import start, until_grip
from datagen.actor_data.starts import (
    TRIED_SHARE,
    draw_gripper,
    draw_stage,
    hold_askew,
    leave,
    miss,
    try_before,
    wander,
    write,
)
from datagen.experts.memoryless.hold import holding
from datagen.experts.scripted.action_labels import chunk
from datagen.experts.scripted.snapshot import Gripper, Snapshot
from predimem.core.config import ConfigError
from predimem.core.episode_folder import episode_path
from predimem.core.episode_reader import load_episode
from predimem.core.episode_writer import save_episode
from predimem.envs.arena.predicates import DRAWER_CLOSED_M
from predimem.envs.arena.robot.delta_pose import Driver
from predimem.envs.arena.robot.rotations import UP, angle_between_rad, top_down
from predimem.envs.arena.subtasks import Skill
from predimem.envs.arena.tasks import task_of
from tests.datagen.experts import arena

SKILLS = ("Move", "Place", "Open", "Close")


def labelled(subtask: str, others: tuple[str, ...], value: float) -> Labelled:
    labels = (subtask, *others)
    return Labelled(
        images={"a": np.full((8, 8, 3), int(value), np.uint8), "b": np.zeros((8, 8, 3), np.uint8)},
        state=np.full(17, value, np.float32),
        subtask=subtask,
        motions={label: label for label in labels},
        chunks={label: np.full((16, 7), value + i, np.float32) for i, label in enumerate(labels)},
        targets_m={label: np.full(3, value) for label in labels},
        pixels={label: np.full((2, 2), 0.5) for label in labels},
    )


def test_what_is_to_be_shut_now_and_then_stands_ajar() -> None:
    env = arena(14, 20_000)
    rng = np.random.default_rng(0)
    close = next(s for s in env.variant().subtasks if s.skill is Skill.CLOSE)
    fresh = Snapshot.of(env)
    leave(fresh, env.variant().subtasks[: env.variant().subtasks.index(close)], rng)
    gripper, openings = Gripper(np.zeros(3), np.eye(3), 0.08), []
    for _ in range(1000):
        scene = fresh.copy()
        try_before(scene, gripper, close, rng)
        openings.append(scene.opening(close.target))
    tried = [o for o in openings if o != fresh.opening(close.target)]
    assert len(tried) / 1000 == pytest.approx(TRIED_SHARE, abs=0.05)
    assert min(tried) > DRAWER_CLOSED_M and np.mean(tried) < 0.45 * fresh.opening(close.target)
    env.close()


def test_fingers_that_cannot_grasp_yet_are_to_be_freed() -> None:
    """In task 4 the butter lies on the table when it is due in its drawer."""
    env = arena(4, 20_000)
    scene = Snapshot.of(env)
    place = next(s for s in env.variant().subtasks if s.skill is Skill.PLACE)
    butter, down = scene.position_m("butter"), top_down(0.0)
    away, there = butter + 0.3 * UP, butter
    assert motion_of(Gripper(away, down, 0.08), scene, place) == "pick butter"
    assert motion_of(Gripper(there, down, 0.05), scene, place) == "pick butter", "they are closing on it"
    assert motion_of(Gripper(away, down, 0.02), scene, place) == "free for butter"
    env.close()


def test_an_episode_has_the_labels_where_they_were_given(tmp_path: Path) -> None:
    frames = [labelled("pick x", ("open y",), 1.0), labelled("open y", (), 5.0)]
    path = episode_path(tmp_path, "T", 20_000)
    save_episode(path, episode_of(frames, "T", 20_000, "Do T.", 0.0, {"kind": "frames"}))
    episode = load_episode(path)
    alternatives = episode.alternatives
    assert alternatives is not None and alternatives.subtasks == ("open y", "pick x")
    np.testing.assert_array_equal(alternatives.valid, [[True, True], [True, False]])
    assert alternatives.chunks[0, 1, 0, 0] == 1.0 and alternatives.chunks[0, 0, 0, 0] == 2.0
    assert alternatives.chunks[1, 0, 0, 0] == 5.0
    assert np.isnan(alternatives.targets_m[1, 1]).all() and np.isfinite(alternatives.targets_m[1, 0]).all()
    np.testing.assert_array_equal(episode.actions, [np.ones(7), np.full(7, 5.0)])
    assert [episode.subtask_at(t) for t in range(2)] == ["pick x", "open y"]
    assert episode.images["a"][1][0, 0, 0] == 5


def test_a_point_in_a_image() -> None:
    matrix = np.array([[50.0, 0, 50, 0], [0, 50, 50, 0], [0, 0, 1, 0]])  # 100 px wide, looking along z
    np.testing.assert_allclose(project(np.array([0.0, 0.5, 1.0]), matrix, (100, 100)), [0.5, 0.75])
    assert np.isnan(project(np.array([0.0, 1.1, 1.0]), matrix, (100, 100))).all()
    assert np.isnan(project(np.array([0.0, 0.0, -1.0]), matrix, (100, 100))).all()


def test_a_chunk_is_cut_after_the_gripper_changes() -> None:
    actions = np.ones((16, 7))
    assert until_grip(actions, 8) == 8
    actions[2:, 6] = -1
    assert until_grip(actions, 8) == 5
    actions[2:, 6], actions[7:, 6] = 1, -1
    assert until_grip(actions, 8) == 8


def test_evaluation_seeds_are_refused() -> None:
    with pytest.raises(ValueError, match="not a training seed"):
        ActorDataConfig(first_seed=900_000)
    with pytest.raises(ConfigError, match="more than chunk_steps"):
        ActorDataConfig(chunk_steps=4)


def test_the_scene_is_left_as_subtasks_leave_it() -> None:
    env = arena(14, 20_000)
    arm = Driver(env).arm
    subtasks = env.variant().subtasks  # open, pick, place, close, and again
    scene, rng = Snapshot.of(env), np.random.default_rng(0)
    drawer, object = subtasks[0].target, subtasks[1].object
    assert leave(scene, subtasks[:2], rng) == object
    assert scene.opening(drawer) > 0.12
    gripper = draw_gripper(scene, arm, object, subtasks[1], rng)
    assert holding(gripper, scene, object)
    assert write(env, arm, scene, gripper)
    now = Snapshot.of(env)
    np.testing.assert_allclose(now.position_m(object), scene.position_m(object), atol=1e-5)
    assert now.opening(drawer) == pytest.approx(scene.opening(drawer), abs=1e-5)
    np.testing.assert_allclose(Gripper.of(arm).position, gripper.position, atol=2e-3)
    assert not possible(subtasks[4], gripper, scene)  # the gripper is full
    assert leave(scene, subtasks[2:4], rng) == ""
    assert 0.0 <= scene.opening(drawer) <= DRAWER_CLOSED_M
    env.close()


def test_wandering_needs_no_physics_and_stays_above_the_table() -> None:
    env = arena(2, 20_001)
    arm = Driver(env).arm
    subtasks = env.variant().subtasks
    lifted = 0
    for seed in range(12):
        rng = np.random.default_rng(seed)
        scene = Snapshot.of(env)
        gripper = wander(draw_gripper(scene, arm, "", None, rng), scene, arm, subtasks[0], rng)
        assert gripper.position[2] > 0.0 and 0.0 <= gripper.gap_m <= 0.0801
        lifted += scene.position_m(subtasks[0].object)[2] > 0.06
    assert 0 < lifted < 12
    env.close()


def test_many_states_are_shortly_before_the_fingers_move() -> None:
    env = arena(2, 20_001)
    arm = Driver(env).arm
    pick = env.variant().subtasks[0]
    near = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        scene = Snapshot.of(env)
        gripper = wander(draw_gripper(scene, arm, "", None, rng), scene, arm, pick, rng)
        near += len(set(chunk(arm, gripper, scene, pick, 10)[:, 6])) > 1
    assert near >= 4, "of states spread evenly over the motion it is one"
    env.close()


def test_fingers_that_closed_on_nothing_are_to_open_again() -> None:
    env = arena(2, 20_001)
    arm, rng = Driver(env).arm, np.random.default_rng(0)
    pick = env.variant().subtasks[0]
    missed = 0
    for _ in range(60):
        scene = Snapshot.of(env)
        gripper = draw_gripper(scene, arm, "", None, rng)
        miss(gripper, scene, pick, rng)
        if gripper.gap_m == 0.0:
            missed += 1
            assert np.linalg.norm(gripper.position - scene.position_m(pick.object)) < 0.3
            assert chunk(arm, gripper, scene, pick, 10)[0, 6] == 1.0
    assert 12 < missed < 36
    env.close()


def test_a_start_in_physics_holds_what_it_shall_hold() -> None:
    env = arena(14, 20_002)
    driver = Driver(env)
    stage = start(env, driver, ("Place",), np.random.default_rng(3))
    assert stage is not None
    subtask = env.variant().subtasks[stage]
    assert holding(Gripper.of(driver.arm), Snapshot.of(env), subtask.object)
    env.close()


def test_some_of_what_the_gripper_should_hold_was_never_picked_up() -> None:
    env = arena(2, 20_001)
    arm, rng = Driver(env).arm, np.random.default_rng(0)
    object, held = env.variant().subtasks[0].object, 0
    for _ in range(80):
        scene = Snapshot.of(env)
        gripper = draw_gripper(scene, arm, object, None, rng)
        lies = scene.position_m(object).tolist() == Snapshot.of(env).position_m(object).tolist()
        assert holding(gripper, scene, object) != lies
        held += not lies
    assert 52 <= held <= 78, "five of six"
    env.close()


def test_some_of_what_is_held_is_askew_and_still_held() -> None:
    env = arena(24, 20_001)
    arm, rng = Driver(env).arm, np.random.default_rng(0)
    angles_rad = []
    for _ in range(60):
        scene = Snapshot.of(env)
        gripper = draw_gripper(scene, arm, "popcorn", None, rng)
        if not holding(gripper, scene, "popcorn"):
            continue
        straight = scene.rotation("popcorn")
        hold_askew(gripper, scene, rng)
        assert holding(gripper, scene, "popcorn")
        angles_rad.append(angle_between_rad(straight, scene.rotation("popcorn")))
    askew = [angle for angle in angles_rad if angle]
    assert 0.2 < len(askew) / len(angles_rad) < 0.5 and max(askew) > 0.3
    env.close()


def test_what_few_episodes_ask_for_is_started_with_more_often() -> None:
    subtasks = task_of("ButterInEmptyDrawer").variants[0].subtasks
    rng = np.random.default_rng(0)
    drawn = Counter(draw_stage(subtasks, SKILLS, rng) for _ in range(900))
    assert set(drawn) == set(range(len(subtasks)))
    (placing,) = (i for i, subtask in enumerate(subtasks) if subtask.skill is Skill.PLACE)
    assert drawn[placing] > 3 * drawn[0] > 0  # "open top drawer" is asked for in many tasks
    assert {draw_stage(subtasks, ["Place"], rng) for _ in range(9)} == {placing}
    assert draw_stage(subtasks, ["Pour"], rng) is None


def test_one_image_has_labels_of_other_variants_too() -> None:
    env = arena(14, 20_003)
    arm = Driver(env).arm
    scene, rng = Snapshot.of(env), np.random.default_rng(0)
    first = env.variant().subtasks[0]
    free = Gripper(np.array([-0.2, 0.0, 0.3]), arm.rest_rotation, 0.08)
    drawn = {s.label for _ in range(20) for s in others(env.task, first, free, scene, rng)}
    drawers = {f"open {which} drawer" for which in ("top", "middle", "bottom")}
    assert drawn == (drawers | {"pick cookies", "pick chocolate"}) - {first.label}  # nothing is held or open
    assert len(others(env.task, first, free, scene, rng)) == OTHERS
    env.close()


def test_grasps_are_taken_over_where_nothing_near_has_moved() -> None:
    env = arena(2, 20_003)
    arm = Driver(env).arm
    known = Snapshot.of(env)
    for name in known.objects:
        known.grasp(arm, name)
    now = Snapshot.of(env)
    position, rotation = now.poses["cookies"]
    now.put("cookies", position + np.array([1.0, 0.0, 0.0]), rotation)
    now.adopt_grasps(known)
    far = {n for n in ("butter", "popcorn") if np.linalg.norm((now.position_m(n) - position)[:2]) > 0.2}
    assert set(now.grasps) == far
    env.close()

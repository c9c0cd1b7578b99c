"""Pauses and visits in the simulator: the pause lasts, a visit changes the scene, and the robot is not touched."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from predimem.envs.arena import make
from predimem.envs.arena.fixtures import DRAWERS
from predimem.envs.arena.predicates import Closed, Inside
from predimem.envs.arena.scene.path import HIGH_M, STEP_M, free_slot_m, passes, path_m
from predimem.envs.arena.subtasks import close_joint, open_joint, pick
from predimem.envs.arena.suite import ArenaEnvironment
from predimem.envs.arena.task import Task, Variant
from predimem.envs.arena.visits import Carry, Pause, Slide, Visit
from tests.envs.arena.playing import hold_still

PAUSE_STEPS, SEED = 150, 500_000
FILLED = (Slide("top_drawer", 0.18), Carry("popcorn", "top_drawer"), Slide("top_drawer", 0.0))

# The first stage passes at once, since the drawer is shut; then the robot has to wait.
TASK = Task(
    task_id=3001,
    name="WaitAndSee",
    title="Wait and See",
    category="long",
    objects=("popcorn", "butter"),
    variants=(
        Variant(
            instruction="Wait, and pick up the butter.",
            subtasks=(
                close_joint("close bottom drawer", "bottom_drawer"),
                close_joint("close middle drawer", "middle_drawer"),
                pick("pick butter", "butter"),
            ),
            pauses=(Pause(1, PAUSE_STEPS),),
            visits=(Visit(1, 20, FILLED), Visit(2, 0, (Carry("butter", "table"),))),
        ),
    ),
)


@pytest.fixture
def env() -> Iterator[Any]:
    made = make(TASK, obs_mode="none", control_mode="pd_joint_pos", render_backend="none")
    made.reset(seed=SEED)
    yield made
    made.close()


def steps_until(env: Any, over: Any, most: int = 600) -> int:
    arm = env.unwrapped
    for step in range(most):
        if over(arm):
            return step
        env.step(hold_still(env))
    raise AssertionError(f"not after {most} steps")


def test_nothing_passes_in_the_pause_and_it_ends_when_it_should(env: Any) -> None:
    arm = env.unwrapped
    assert steps_until(env, lambda arm: int(arm.progress.stage[0]) == 1) == 1
    assert arm.waiting
    waited = steps_until(env, lambda arm: int(arm.progress.stage[0]) == 2)
    assert waited >= PAUSE_STEPS and not arm.waiting  # the drawer of stage 1 is shut all the time
    assert waited == PAUSE_STEPS or arm.visitor.state()[0, 2] == 1  # longer only until somebody has finished


def test_a_pause_without_visits_lasts_to_the_step() -> None:
    quiet = replace(TASK, variants=(replace(TASK.variants[0], visits=()),))
    env = make(quiet, obs_mode="none", control_mode="pd_joint_pos", render_backend="none")
    env.reset(seed=SEED)
    steps_until(env, lambda arm: int(arm.progress.stage[0]) == 1)
    assert steps_until(env, lambda arm: int(arm.progress.stage[0]) == 2) == PAUSE_STEPS
    env.close()


def test_somebody_puts_a_thing_into_a_drawer_smoothly(env: Any) -> None:
    arm = env.unwrapped
    before = arm.world().position_m["popcorn"][0].numpy().copy()
    robot = arm.agent.robot.qpos[0, :7].numpy().copy()
    openings, places = [], []
    for _ in range(400):
        env.step(hold_still(env))
        openings.append(float(arm.world().joint["top_drawer"][0]))
        places.append(arm.world().position_m["popcorn"][0].numpy().copy())
    assert max(openings) > 0.16 and np.abs(np.diff(openings)).max() < 0.02
    assert np.linalg.norm(np.diff(places, axis=0), axis=1).max() < 2 * STEP_M
    world = arm.world()
    assert bool(Inside("popcorn", "top_drawer")(world)[0]) and bool(Closed("top_drawer")(world)[0])
    assert np.linalg.norm(places[-1] - before) > 0.2 and np.linalg.norm(places[-1] - places[-20]) < 0.002
    np.testing.assert_allclose(arm.agent.robot.qpos[0, :7].numpy(), robot, atol=0.05)


def test_somebody_moves_a_thing_to_a_free_place_of_the_table(env: Any) -> None:
    arm = env.unwrapped
    before = arm.world().position_m["butter"][0].numpy().copy()
    steps_until(env, lambda arm: int(arm.visitor.state()[0, 2]) == 2, most=900)
    after = arm.world().position_m["butter"][0].numpy()
    assert np.linalg.norm(after[:2] - before[:2]) > 0.07 and abs(after[2] - before[2]) < 0.004
    assert float(arm.world().upright("butter")[0]) > 0.99


def test_the_same_seed_gives_the_same_episode_and_a_saved_state_goes_on(env: Any) -> None:
    arm = env.unwrapped
    for _ in range(90):
        env.step(hold_still(env))
    assert arm.visited
    saved = {key: value for key, value in arm.get_state_dict().items()}
    visit = arm.visitor.state().clone()
    for _ in range(200):
        env.step(hold_still(env))
    gone_on = arm.world().position_m["popcorn"][0].numpy().copy()
    arm.set_state_dict(saved)
    assert np.allclose(arm.visitor.state(), visit)
    for _ in range(200):
        env.step(hold_still(env))
    np.testing.assert_allclose(arm.world().position_m["popcorn"][0].numpy(), gone_on, atol=0.01)
    env.reset(seed=SEED)
    assert not arm.visited and int(arm.visitor.state()[0, 2]) == 0


def test_records_say_that_the_stage_before_a_pause_is_still_the_right_one() -> None:
    world = ArenaEnvironment(make(TASK, obs_mode="none", control_mode="pd_joint_pos", render_backend="none"), None)
    world.reset(SEED)
    reports = [world.step(world.hold_action(None)).info for _ in range(PAUSE_STEPS // 2)]
    assert {report["stage_due"] for report in reports} == {0}
    assert not any(report["undue"] or report["failed_attempts"] for report in reports)
    world.close()


def test_a_visit_that_comes_too_late_does_not_take_place() -> None:
    early = Visit(0, 5, (Slide("top_drawer", 0.18),))  # stage 0 passes at the first step
    env: Any = make(
        replace(TASK, variants=(replace(TASK.variants[0], visits=(early,)),)),
        obs_mode="none", control_mode="pd_joint_pos", render_backend="none",
    )  # fmt: skip
    env.reset(seed=SEED)
    for _ in range(60):
        env.step(hold_still(env))
        assert float(env.unwrapped.world().joint["top_drawer"][0]) < 0.005
    env.close()


def test_visits_need_a_world_of_their_own() -> None:
    with pytest.raises(ValueError, match="task WaitAndSee has pauses or visits, which need num_envs=1; got 2"):
        make(TASK, obs_mode="none", num_envs=2, render_backend="none")


def test_a_way_goes_over_the_front_of_a_drawer() -> None:
    start, goal = np.array([-0.2, 0.0, 0.03]), np.array([0.05, 0.33, 0.26])
    way = path_m(start, goal, 0.17, into_drawer=True)
    assert np.linalg.norm(np.diff(way, axis=0), axis=1).max() <= STEP_M + 1e-9
    np.testing.assert_array_equal(way[[0, -1]], [start, goal])
    assert way[way[:, 0] > -0.1][0, 2] == HIGH_M
    assert passes(way, 0.03, np.array([-0.15, 0.0, 0.27]), 0.15)
    assert not passes(way, 0.03, np.array([-0.15, 0.0, 0.12]), 0.15)


def test_the_second_slot_is_taken_where_the_first_is_full() -> None:
    frame = np.array([0.0, 0.3, 0.2])
    first = free_slot_m(DRAWERS[0], frame, [])
    second = free_slot_m(DRAWERS[0], frame, [first])
    assert np.linalg.norm(first - second) > 0.06


def test_variants_of_long_tasks_may_differ_in_their_order() -> None:
    other = replace(
        TASK.variants[0], subtasks=(open_joint("open top drawer", "top_drawer"), *TASK.variants[0].subtasks[1:])
    )
    with pytest.raises(ValueError, match="all variants have the same number of subtasks with the same skills"):
        replace(TASK, variants=(TASK.variants[0], other))
    assert replace(TASK, variants=(TASK.variants[0], other), same_order=False).stages == 3

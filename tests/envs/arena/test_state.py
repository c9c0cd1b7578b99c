"""Exactness where it is hard: held grasps, open drawers and doors, things knocked over; saving and restoring."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from typing import Any

import numpy as np
import pytest
import torch

import predimem.envs.arena
from predimem.envs.arena.progress import Progress
from tests.envs.arena.playing import grasp, hold_still, play, random_actions

BOTTLE = "wine_bottle"


@pytest.fixture(scope="module")
def env() -> Iterator[Any]:
    """Task 10: a bottle, a box and a mug."""
    made: Any = predimem.envs.arena.make(10, obs_mode="none")
    yield made
    made.close()


def wreck(env: Any) -> None:
    """Pick up the bottle, open all drawers and the door, and flail about with it."""
    grasp(env, BOTTLE)
    assert env.unwrapped.evaluate()["stage"].item() == 1, "the bottle should be held"
    env.unwrapped.fixtures["cabinet"].set_qpos(torch.tensor([[0.10, 0.15, 0.05]]))
    env.unwrapped.fixtures["microwave"].set_qpos(torch.tensor([[1.0]]))
    play(env, random_actions(env, 40, closed=True))


@pytest.mark.slow
def test_contacts_leave_no_trace_in_the_next_episode(env: Any) -> None:
    actions = random_actions(env, 40, seed=1, closed=True)

    def episode(world: Any) -> np.ndarray:
        world.reset(seed=5)
        grasp(world, BOTTLE)
        return play(world, actions)

    first = episode(env)
    wreck_seed = 5
    env.reset(seed=wreck_seed)
    wreck(env)
    assert np.array_equal(first, episode(env))
    fresh = predimem.envs.arena.make(10, obs_mode="none")
    assert np.array_equal(first, episode(fresh))
    fresh.close()


def test_driving_joints_into_things_is_exact_too() -> None:
    env: Any = predimem.envs.arena.make(4, obs_mode="none", control_mode="pd_joint_pos")
    actions = np.repeat(random_actions(env, 8, seed=2), 12, axis=0)  # long enough to get there
    rolls = []
    for _ in range(2):
        env.reset(seed=1)
        rolls.append(play(env, actions))
        moved = np.abs(rolls[-1][-1] - rolls[-1][0])
        assert moved.max() > 0.5
    assert np.array_equal(*rolls)
    env.close()


@pytest.fixture
def saved(env: Any) -> tuple[dict[str, Any], torch.Tensor]:
    """A state with a held bottle and open furniture, as a dict and flat."""
    env.reset(seed=5)
    wreck(env)
    return env.unwrapped.get_state_dict(), env.unwrapped.get_state()


def test_restoring_gives_back_all_of_it(env: Any, saved: tuple[dict[str, Any], torch.Tensor]) -> None:
    state, flat = saved
    targets = env.unwrapped.agent.robot.drive_targets
    for back in (
        lambda: env.unwrapped.set_state_dict(state),
        lambda: env.unwrapped.set_state(flat),
        lambda: env.unwrapped.set_state(flat[0].numpy(), env_idx=torch.tensor([0])),
        lambda: env.reset(seed=1, options={"reset_to_env_states": {"env_states": state}}),
        lambda: env.reset(seed=1, options={"reset_to_env_states": {"env_states": flat}}),
    ):
        env.reset(seed=8)  # other poses of furniture and objects
        play(env, random_actions(env, 3))
        assert not torch.allclose(env.unwrapped.get_state(), flat, atol=1e-3)
        back()
        assert torch.allclose(env.unwrapped.get_state(), flat, atol=1e-6, rtol=0)
        assert torch.equal(env.unwrapped.agent.robot.drive_targets, targets)
        assert env.unwrapped.evaluate()["stage"].item() == 1


def test_the_memory_of_the_task_comes_back(env: Any) -> None:
    world = env.unwrapped
    env.reset(seed=0)
    for value, entry in enumerate(fields(Progress)[1:], start=2):
        getattr(world.progress, entry.name)[0] = value
    world.rest_bottom_m[0] = torch.tensor([0.25, 0.5])
    state, flat = world.get_state_dict(), world.get_state()
    for back in (lambda: world.set_state_dict(state), lambda: world.set_state(flat)):
        env.reset(seed=1)
        back()
        found = [getattr(world.progress, entry.name).item() for entry in fields(Progress)[1:]]
        assert found == list(range(2, 2 + len(found)))
        assert all(getattr(world.progress, e.name).dtype == torch.int64 for e in fields(Progress))
        assert world.rest_bottom_m.tolist() == [[0.25, 0.5]]
        assert world.elapsed_steps.dtype == torch.int32


def test_a_saved_state_is_a_copy(env: Any) -> None:
    env.reset(seed=0)
    state = env.unwrapped.get_state_dict()
    before = torch.cat([value.flatten() for value in state["task"].values()] + [state["drive_targets"].flatten()])
    play(env, random_actions(env, 5))
    after = torch.cat([value.flatten() for value in state["task"].values()] + [state["drive_targets"].flatten()])
    assert torch.equal(before, after)


def test_roll_outs_from_one_state_are_bit_identical(env: Any, saved: tuple[dict[str, Any], torch.Tensor]) -> None:
    actions = random_actions(env, 30, seed=3, closed=True)
    original = play(env, actions)
    rolls = []
    for seed in (1, 2):
        env.reset(seed=seed, options={"reset_to_env_states": {"env_states": saved[0]}})
        rolls.append(play(env, actions))
        play(env, random_actions(env, 5))
    assert np.array_equal(*rolls)
    # The original had contact caches that cannot be saved: a held bottle turns a little otherwise.
    task = sum(value.shape[1] for value in saved[0]["task"].values())
    targets = slice(-task - 9, -task)  # the robot's drive targets
    assert np.abs(original[:, targets] - rolls[0][:, targets]).max() < 0.05
    assert env.unwrapped.evaluate()["stage"].item() == 1


def test_without_contacts_the_original_is_followed_closely(env: Any) -> None:
    env.reset(seed=3)
    play(env, random_actions(env, 5) * 0.3)
    state = env.unwrapped.get_state_dict()
    actions = random_actions(env, 40, seed=4) * 0.3

    def poses() -> np.ndarray:
        """[T, 9 + 3]: the arm's joints, and where the bottle stands."""
        seen = []
        for action in actions:
            env.step(action)
            world = env.unwrapped.world()
            seen.append(torch.cat([env.unwrapped.agent.robot.qpos[0], world.position_m[BOTTLE][0]]).numpy())
        return np.array(seen)

    original = poses()
    env.unwrapped.set_state_dict(state)
    assert np.abs(original - poses()).max() < 1e-4
    assert np.abs(original[0] - original[-1]).max() > 0.05


def test_a_step_without_an_action_goes_on_to_the_restored_targets(env: Any) -> None:
    env.reset(seed=3)
    env.step(np.array([0.5, 0, 0, 0, 0, 0, 1.0]))
    state = env.unwrapped.get_state_dict()
    env.step(None)
    original = env.unwrapped.agent.robot.qpos
    env.reset(seed=4)
    env.unwrapped.set_state_dict(state)
    env.step(None)
    assert torch.allclose(env.unwrapped.agent.robot.qpos, original, atol=1e-4)


def test_after_a_reset_a_step_without_an_action_holds_the_arm(env: Any) -> None:
    env.reset(seed=3)
    before = env.unwrapped.agent.robot.qpos
    for _ in range(5):
        env.step(None)
    assert torch.allclose(env.unwrapped.agent.robot.qpos, before, atol=1e-3)


def test_a_restored_episode_ends_at_the_same_horizon() -> None:
    env: Any = predimem.envs.arena.make(10, obs_mode="none", horizon=5)
    env.reset(seed=0)
    env.step(hold_still(env))
    env.step(hold_still(env))
    state = env.unwrapped.get_state_dict()
    env.reset(seed=1, options={"reset_to_env_states": {"env_states": state}})
    assert [bool(env.step(hold_still(env))[3]) for _ in range(3)] == [False, False, True]
    env.close()


def test_a_state_that_does_not_fit_is_refused_and_changes_nothing(env: Any) -> None:
    world = env.unwrapped
    env.reset(seed=0)
    good, flat = world.get_state_dict(), world.get_state()
    other: Any = predimem.envs.arena.make(16, obs_mode="none")  # pours milk into a mug
    foreign, foreign_flat = other.unwrapped.get_state_dict(), other.unwrapped.get_state()
    other.close()
    twice = {key: value for key, value in good.items()} | {"drive_targets": good["drive_targets"].repeat(2, 1)}
    broken = {**good, "drive_targets": torch.full((1, 9), torch.nan)}
    wrong_id = {**good, "task": {**good["task"], "task_id": torch.tensor([[16]])}}
    lacking = {key: value for key, value in good.items() if key != "task"}
    for state, message in (
        (foreign, "not a state of this task"),
        (lacking, "it lacks .*task/stage"),
        (wrong_id, "state of task 16, and the environment plays task 10"),
        (twice, r"'drive_targets' has to be of shape \(1, 9\), not \(2, 9\)"),
        (broken, "not finite"),
    ):
        with pytest.raises(ValueError, match=message):
            world.set_state_dict(state)
    for state in (flat[:, :-1], foreign_flat[:, :-1], torch.zeros(1, 2, 3)):
        with pytest.raises(ValueError, match=r"numbers per world"):
            world.set_state(state)
    with pytest.raises(ValueError, match="has to be of shape"):
        world.set_state(flat.repeat(2, 1))
    assert torch.equal(world.get_state(), flat)

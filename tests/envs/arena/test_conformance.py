"""What every task of the arena must keep to, as an environment of Gymnasium and ManiSkill."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import gymnasium
import numpy as np
import pytest
import torch
from mani_skill.utils import common
from mani_skill.utils.wrappers import CPUGymWrapper

import predimem.envs.arena
from predimem.envs.arena.task import CATEGORIES, Task
from predimem.envs.arena.tasks import TASKS
from tests.envs.arena.playing import hold_still, play, random_actions

INFO = {"success", "fail", "stage", "pours", "clipped_actions", "elapsed_steps"}
ACTIONS = {"pd_ee_delta_pose": 7, "pd_joint_pos": 8}
FIRST_OF_CATEGORY = [next(task for task in TASKS if task.category == category) for category in CATEGORIES]
QUICK = {*(task.task_id for task in FIRST_OF_CATEGORY), 19, 22}  # with a shelf, and with the microwave


def make(task: Task, **kwargs: Any) -> gymnasium.Env:
    return gymnasium.make(task.env_id, **kwargs)


def params() -> list[Any]:
    """All tasks; those that need not be tried each time are slow."""
    return [
        pytest.param(task, id=f"{task.task_id}-{task.name}", marks=() if task.task_id in QUICK else pytest.mark.slow)
        for task in TASKS
    ]


@pytest.fixture(scope="module", params=params())
def env(request: pytest.FixtureRequest) -> Iterator[gymnasium.Env]:
    """One environment a task, with the default options, for all tests of this module."""
    torch.set_num_threads(1)
    made = make(request.param)
    yield made
    made.close()


@pytest.fixture
def task(env: gymnasium.Env) -> Task:
    return env.unwrapped.task  # type: ignore[attr-defined]


def test_it_is_registered_with_its_task_horizon_and_frequency(env: Any, task: Task) -> None:
    assert env.spec.id == task.env_id == f"predimem/Arena-{task.name}-v0"
    assert env.spec.max_episode_steps == task.horizon
    assert env.unwrapped.control_freq == 20 == env.metadata["render_fps"]
    assert env.unwrapped.obs_mode == "state" and env.unwrapped.control_mode == "pd_ee_delta_pose"


@pytest.mark.parametrize("control_mode", ACTIONS)
def test_actions_have_the_space_of_their_control_mode(env: Any, task: Task, control_mode: str) -> None:
    other = env if control_mode == env.unwrapped.control_mode else make(task, control_mode=control_mode)
    space = other.action_space
    assert space.shape == (ACTIONS[control_mode],) and space.dtype == np.float32
    assert np.isfinite(space.low).all() and np.isfinite(space.high).all()
    other.reset(seed=0)
    info = other.step(space.sample())[4]
    assert info["clipped_actions"].item() == 0


def test_a_reset_gives_an_observation_of_the_space_and_nothing_done(env: Any, task: Task) -> None:
    observation, info = env.reset(seed=3)
    assert env.observation_space.contains(common.to_numpy(observation))
    assert info.keys() >= INFO
    for key in INFO:
        assert info[key].shape == (1,) and info[key].item() == 0, key
    world = env.unwrapped
    assert world.variant() in task.variants and world.instructions() == [world.variant().instruction]
    assert world.failure() == ""


def test_the_seed_alone_decides_the_start(env: Any) -> None:
    first = env.reset(seed=11)[0]
    state = env.unwrapped.get_state()
    play(env, random_actions(env, 5))
    other = env.reset(seed=12)[0]
    assert not torch.equal(first, other)
    assert torch.equal(first, env.reset(seed=11)[0])
    assert torch.equal(state, env.unwrapped.get_state())


def test_resets_without_a_seed_follow_from_the_last_seed(env: Any) -> None:
    def three() -> list[torch.Tensor]:
        return [env.reset(seed=5)[0], env.reset()[0], env.reset()[0]]

    starts = three()
    assert not torch.equal(starts[1], starts[0]) and not torch.equal(starts[1], starts[2])
    assert all(torch.equal(a, b) for a, b in zip(starts, three(), strict=True))


def test_a_step_returns_what_the_batched_interface_promises(env: Any) -> None:
    env.reset(seed=1)
    observation, reward, terminated, truncated, info = env.step(hold_still(env))
    assert env.observation_space.contains(common.to_numpy(observation))
    for value, dtype in ((reward, torch.float32), (terminated, torch.bool), (truncated, torch.bool)):
        assert value.shape == (1,) and value.dtype == dtype
    assert info.keys() >= INFO and info["elapsed_steps"].item() == 1
    assert info["success"].dtype == info["fail"].dtype == torch.bool
    assert not terminated.item() and not truncated.item() and reward.item() == 0
    later = env.step(hold_still(env))[4]
    assert (info["elapsed_steps"].item(), later["elapsed_steps"].item()) == (1, 2)  # no shared memory


def test_it_truncates_exactly_at_the_horizon(task: Task) -> None:
    short = predimem.envs.arena.make(task.task_id, horizon=4, obs_mode="none")
    short.reset(seed=0)
    for _ in range(2):
        assert [bool(short.step(hold_still(short))[3]) for _ in range(4)] == [False, False, False, True]
        short.reset(seed=0)
    short.close()


def test_the_same_actions_give_bit_identical_states(env: Any, task: Task) -> None:
    """In the same environment after other episodes, and in a new one."""
    actions = random_actions(env, 30)
    env.reset(seed=7)
    states = play(env, actions)
    env.reset(seed=8)
    play(env, random_actions(env, 20, seed=1))
    env.reset(seed=7)
    assert np.array_equal(states, play(env, actions))
    other = make(task)
    other.reset(seed=7)
    assert np.array_equal(states, play(other, actions))
    other.close()


def test_a_state_is_restored_and_played_on(env: Any, task: Task) -> None:
    world = env.unwrapped
    env.reset(seed=2)
    play(env, random_actions(env, 10))
    state, flat = world.get_state_dict(), world.get_state()
    actions = random_actions(env, 10, seed=1)
    play(env, actions)
    ends = [world.world().position_m[name] for name in task.objects]
    world.set_state_dict(state)
    assert torch.allclose(world.get_state(), flat, atol=1e-6, rtol=0)
    play(env, actions)
    for name, end in zip(task.objects, ends, strict=True):
        assert (world.world().position_m[name] - end).norm() < 0.005
    rolls = []
    for seed, saved in ((3, state), (4, flat)):  # both forms, in scenes that were built afresh
        env.reset(seed=seed, options={"reset_to_env_states": {"env_states": saved}})
        assert world.elapsed_steps.item() == 10
        rolls.append(play(env, actions))
    assert np.array_equal(*rolls)


def test_no_stage_passes_by_itself_and_nothing_moves(env: Any, task: Task) -> None:
    for seed in range(3):
        env.reset(seed=seed)
        world = env.unwrapped.world()
        before = {name: world.position_m[name] for name in (*task.objects, *task.fixtures)}
        for _ in range(30):
            _, reward, terminated, _, info = env.step(hold_still(env))
        world = env.unwrapped.world()
        assert info["stage"].item() == 0 and not terminated.item() and reward.item() == 0
        assert info["pours"].item() == 0 and env.unwrapped.failure() == ""
        for name, position in before.items():
            assert (world.position_m[name] - position).norm() < 0.01, name


def test_evaluating_changes_nothing(env: Any) -> None:
    env.reset(seed=4)
    play(env, random_actions(env, 3))
    before = env.unwrapped.get_state()
    first, second = env.unwrapped.evaluate(), env.unwrapped.evaluate()
    assert all(torch.equal(first[key], second[key]) for key in first)
    assert torch.equal(before, env.unwrapped.get_state())


def test_the_hidden_state_is_drawn_by_the_seed(env: Any, task: Task) -> None:
    drawn = []
    for seed in range(8 * len(task.variants)):
        env.reset(seed=seed)
        drawn.append(task.variants.index(env.unwrapped.variant()))
        if set(drawn) == set(range(len(task.variants))):
            return
    pytest.fail(f"{len(drawn)} seeds drew only the variants {sorted(set(drawn))}")


def test_it_conforms_to_gymnasium_when_unbatched(env: Any) -> None:
    from gymnasium.utils import env_checker, passive_env_checker

    plain = CPUGymWrapper(env)
    passive_env_checker.check_observation_space(plain.observation_space)
    passive_env_checker.check_action_space(plain.action_space)
    env_checker.check_reset_seed(plain)
    env_checker.check_reset_options(plain)
    passive_env_checker.env_reset_passive_checker(plain, seed=0)
    passive_env_checker.env_step_passive_checker(plain, plain.action_space.sample())


@pytest.mark.parametrize("task", FIRST_OF_CATEGORY, ids=lambda task: task.category)
def test_images_come_with_nothing_that_a_robot_could_not_know(task: Task) -> None:
    seeing = make(task, obs_mode="rgb", image_px=64)
    observation, _ = seeing.reset(seed=0)
    assert seeing.observation_space.contains(common.to_numpy(observation))
    assert {name: set(value) for name, value in observation.items() if name in ("agent", "extra")} == {
        "agent": {"qpos", "qvel"},
        "extra": {"tcp_pose"},
    }
    assert set(observation["sensor_data"]) == {"agentview_rgb", "eye_in_hand_rgb"}
    for camera in observation["sensor_data"].values():
        image = camera["rgb"]
        assert image.shape == (1, 64, 64, 3) and image.dtype == torch.uint8
        assert image.float().std() > 10
    seeing.close()

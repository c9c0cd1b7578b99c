"""The arena's environments: how they are made, what they refuse, what they show."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
import torch
from mani_skill.vector.wrappers.gymnasium import ManiSkillVectorEnv

import predimem.envs.arena
from predimem.envs.arena.layout import draw_layout, place_point_m
from predimem.envs.arena.objects import OBJECTS
from predimem.envs.arena.tasks import TASKS, task_of
from predimem.rendering import maniskill as rendering
from tests.envs.arena.playing import hold_still, play, random_actions

ROOT = Path(__file__).parents[3]
ID = "predimem/Arena-ButterInOccupiedDrawer-v0"  # task 4


@pytest.fixture(scope="module")
def env() -> Iterator[Any]:
    made: Any = gymnasium.make(ID, obs_mode="none")
    yield made
    made.close()


def python(script: str, **environ: str) -> str:
    """What a fresh interpreter prints."""
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, "OMP_NUM_THREADS": "1", **environ},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


# ---- making one


def test_importing_the_arena_registers_all_tasks_and_loads_no_simulator() -> None:
    script = """
import sys, predimem.envs.arena, gymnasium
print(sorted(id for id in gymnasium.registry if id.startswith("predimem/Arena-")))
print([m for m in ("sapien", "mani_skill", "torch") if m in sys.modules])
"""
    ids, heavy = python(script).splitlines()
    assert ids == str(sorted(task.env_id for task in TASKS))
    assert heavy == "[]"


@pytest.mark.parametrize("key", [4, "4", "ButterInOccupiedDrawer", ID])
def test_a_task_is_found_by_number_name_and_id(key: int | str) -> None:
    made: Any = predimem.envs.arena.make(key, obs_mode="none")
    assert made.spec.id == ID and made.unwrapped.task.task_id == 4
    made.close()


def test_its_spec_makes_it_again() -> None:
    made: Any = predimem.envs.arena.make(4, horizon=7, obs_mode="none", control_mode="pd_joint_pos")
    again: Any = made.spec.make()
    assert again.spec.max_episode_steps == made.spec.max_episode_steps == 7
    assert again.unwrapped.control_mode == "pd_joint_pos"
    made.close()
    again.close()
    again.close()  # twice is allowed


BAD_OPTIONS = [
    ({"task": 27}, "unknown arena task 27.*ButterInOccupiedDrawer"),
    ({"task": "Butter"}, "unknown arena task 'Butter'.*ButterInOccupiedDrawer"),
    ({"horizon": 0}, "whole number of control steps, 1 or more, not 0"),
    ({"horizon": -5}, "1 or more, not -5"),
    ({"horizon": 2.5}, "1 or more, not 2.5"),
    ({"control_mode": "pd_ee_pose"}, "control_mode is one of pd_ee_delta_pose, pd_joint_pos, not 'pd_ee_pose'"),
    ({"obs_mode": "rgb+sound"}, "unknown mode 'rgb.sound': there are .*segmentation"),
    ({"obs_mode": "rgb", "render_backend": "none"}, "leave render_backend out"),
    ({"render_mode": "rgb_array", "render_backend": "none"}, "leave render_backend out"),
    ({"image_px": 0}, "image_px .* 1 or more, not 0"),
    ({"num_envs": 0}, "num_envs .* 1 or more, not 0"),
    ({"num_envs": 2, "sim_backend": "cpu"}, "num_envs=2 needs PhysX on a CUDA GPU.*AsyncVectorEnv"),
]


@pytest.mark.parametrize(("options", "message"), BAD_OPTIONS, ids=[str(options) for options, _ in BAD_OPTIONS])
def test_a_bad_option_is_refused_with_what_is_allowed(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        predimem.envs.arena.make(**{"task": 4, "obs_mode": "none", **options})


@pytest.mark.skipif(torch.cuda.is_available(), reason="it is about machines without a CUDA GPU, and this one has one")
def test_many_worlds_without_a_gpu_are_refused() -> None:
    with pytest.raises(ValueError, match="num_envs=2 needs PhysX on a CUDA GPU"):
        predimem.envs.arena.make(4, obs_mode="none", num_envs=2)


@pytest.mark.slow
def test_without_images_no_vulkan_driver_is_needed_and_with_images_the_error_says_so() -> None:
    script = f"""
import gymnasium, predimem.envs.arena
from predimem.rendering.vulkan import VulkanError
for mode in ("state", "none"):
    env = gymnasium.make({ID!r}, obs_mode=mode)
    env.reset(seed=0)
    env.step(env.action_space.sample())
for options in ({{"obs_mode": "rgb"}}, {{"render_mode": "rgb_array"}}, {{"render_backend": "auto"}}):
    try:
        gymnasium.make({ID!r}, **options)
    except VulkanError as error:
        print(error)
"""
    lines = python(script, VK_ICD_FILENAMES="/nowhere/icd.json").splitlines()
    assert len(lines) == 3
    assert all("no Vulkan driver" in line and "/nowhere/icd.json" in line and "doctor" in line for line in lines)


@pytest.mark.slow
def test_images_can_be_wanted_after_an_environment_without_any() -> None:
    """SAPIEN lists its devices once in a process. And if somebody else made it do so, the error says it."""
    script = f"""
import gymnasium, predimem.envs.arena
first = gymnasium.make({ID!r}, obs_mode="state")
first.reset(seed=0)
second = gymnasium.make({ID!r}, obs_mode="rgb", image_px=32)
print(second.reset(seed=0)[0]["sensor_data"]["agentview_rgb"]["rgb"].shape)
"""
    assert python(script).splitlines()[-1] == "torch.Size([1, 32, 32, 3])"
    if rendering.prepare().startswith("pci:"):
        script = f"""
import sapien, gymnasium, predimem.envs.arena
sapien.Device("cpu")
try:
    gymnasium.make({ID!r}, obs_mode="rgb")
except Exception as error:
    print(type(error).__name__, error)
"""
        last = python(script, VK_ICD_FILENAMES="").splitlines()[-1]
        assert last.startswith("VulkanError SAPIEN knows no device") and "maniskill.prepare()" in last


# ---- seeds and actions


@pytest.mark.parametrize("seed", [-1, 2**32, 1.5, "one", [1, 2]])
def test_a_bad_seed_is_refused(env: Any, seed: Any) -> None:
    with pytest.raises(ValueError, match=r"a seed is a whole number from 0 to 2\*\*32 - 1"):
        env.reset(seed=seed)


@pytest.mark.parametrize("seed", [0, 2**32 - 1, np.int64(7), [3]])
def test_a_good_seed_is_what_the_layout_is_drawn_from(env: Any, seed: Any) -> None:
    env.reset(seed=seed)
    layout = draw_layout(task_of(4), int(np.atleast_1d(seed)[0]))
    world = env.unwrapped.world()
    assert int(env.unwrapped.progress.variant[0]) == layout.variant
    for name, (position, _) in {**layout.objects, **layout.fixtures}.items():
        assert np.allclose(world.position_m[name][0], position, atol=1e-6)
    assert np.allclose(env.unwrapped.agent.robot.qpos[0], layout.qpos, atol=1e-6)


@pytest.mark.parametrize("control_mode", ["pd_ee_delta_pose", "pd_joint_pos"])
def test_a_wrong_action_is_refused_and_nothing_moves(control_mode: str) -> None:
    env: Any = predimem.envs.arena.make(4, obs_mode="none", control_mode=control_mode)
    env.reset(seed=0)
    env.step(hold_still(env))
    before = env.unwrapped.get_state()
    good = hold_still(env)
    nan, inf = good.copy(), good.copy()
    nan[2], inf[0] = np.nan, np.inf
    for bad in (good[:-1], np.stack([good, good]), np.float32(0), nan, inf, "up", {"arm": good}, [[good]]):
        with pytest.raises(ValueError, match=f"an action of {control_mode} is finite numbers of shape .{len(good)},.*"):
            env.step(bad)
    assert torch.equal(before, env.unwrapped.get_state())
    for fine in (good, good[None], good.tolist(), torch.as_tensor(good), good.astype(np.float64)):
        assert env.step(fine)[4]["clipped_actions"].item() == 0
    env.close()


def test_the_error_tells_the_limits() -> None:
    env: Any = predimem.envs.arena.make(4, obs_mode="none", control_mode="pd_joint_pos")
    env.reset(seed=0)
    with pytest.raises(
        ValueError, match=r"shape \(8,\) or \(1, 8\), from \[-2.8973, .* to \[ 2.8973, .*; got shape \(3,\)"
    ):
        env.step(np.zeros(3))
    env.close()


def test_an_action_beyond_the_limits_is_clipped_and_counted(env: Any) -> None:
    env.reset(seed=0)
    far = np.array([0.2, -3, 0, 0, 0, 9, 1], np.float32)
    assert [env.step(far)[4]["clipped_actions"].item() for _ in range(3)] == [1, 2, 3]
    clipped = env.unwrapped.get_state()
    env.reset(seed=0)
    within = np.clip(far, -1, 1)
    assert [env.step(within)[4]["clipped_actions"].item() for _ in range(3)] == [0, 0, 0]
    moved = env.unwrapped.get_state() - clipped
    assert moved.abs().sum() == 3  # nothing differs but the count
    assert env.reset(seed=0)[1]["clipped_actions"].item() == 0


# ---- ends


def test_success_ends_the_episode_with_a_reward(env: Any) -> None:
    env.reset(seed=0)
    base = env.unwrapped
    layout, task = draw_layout(base.task, 0), base.task
    drawer = base.variant().subtasks[-1].target
    target = place_point_m(drawer, layout.fixtures, (0.0, -0.06))
    target[2] += OBJECTS["butter"].half_height_m + 0.002
    base.progress.stage[0] = task.stages  # all were passed; only what lasts is looked at
    reward, terminated, _, info = env.step(hold_still(env))[1:]
    assert not info["success"].item() and not terminated.item() and reward.item() == 0
    butter = base.objects["butter"]
    pose = butter.pose.raw_pose.clone()
    pose[0] = torch.tensor([*target, 0.7071068, 0, 0, 0.7071068])
    butter.set_pose(type(butter.pose).create(pose))
    reward, terminated, _, info = env.step(hold_still(env))[1:]
    assert info["success"].item() and terminated.item() and reward.item() == 1


def test_a_lost_object_ends_the_episode_with_a_penalty(env: Any) -> None:
    env.reset(seed=0)
    butter = env.unwrapped.objects["butter"]
    pose = butter.pose.raw_pose.clone()
    pose[0, 2] = -0.3
    butter.set_pose(type(butter.pose).create(pose))
    reward, terminated, _, info = env.step(hold_still(env))[1:]
    assert info["fail"].item() and terminated.item() and reward.item() == -1
    assert "fell off" in env.unwrapped.failure()


def test_reward_mode_none_pays_nothing() -> None:
    env: Any = predimem.envs.arena.make(4, obs_mode="none", reward_mode="none")
    env.reset(seed=0)
    env.unwrapped.progress.failure[0] = 1
    reward, terminated = env.step(hold_still(env))[1:3]
    assert terminated.item() and reward.item() == 0
    env.close()


def test_maniskills_vector_interface_goes_on_with_the_next_episode() -> None:
    vector = ManiSkillVectorEnv(predimem.envs.arena.make(4, horizon=3, obs_mode="state"), auto_reset=True)
    vector.reset(seed=0)
    still = hold_still(vector)[None]
    steps = [vector.step(still) for _ in range(4)]
    assert [bool(step[3]) for step in steps] == [False, False, True, False]
    assert [step[4]["elapsed_steps"].item() for step in steps] == [1, 2, 0, 1]
    vector.close()


# ---- images


def test_an_observation_is_rendered_when_it_is_asked_for() -> None:
    env: Any = predimem.envs.arena.make(4, obs_mode="none", render_backend="auto", image_px=48)
    seen, _ = env.reset(seed=0)
    assert seen == {}
    arm = env.unwrapped
    first = arm.observe()
    assert {name: set(textures) for name, textures in first.items()} == {
        "agentview_rgb": {"rgb"},
        "eye_in_hand_rgb": {"rgb"},
    }
    before = arm.get_state()
    all_of_it = arm.observe("rgb+depth+segmentation")
    assert torch.equal(before, arm.get_state())
    for name, textures in all_of_it.items():
        assert set(textures) == {"rgb", "depth", "segmentation"}
        assert textures["rgb"].shape == (1, 48, 48, 3) and textures["rgb"].dtype == torch.uint8
        assert textures["depth"].shape == textures["segmentation"].shape == (1, 48, 48, 1)
        assert textures["depth"].dtype == torch.int16 and textures["depth"].max() > 100  # mm
        assert torch.equal(textures["rgb"], first[name]["rgb"])
    ids = all_of_it["agentview_rgb"]["segmentation"].unique().tolist()
    names = {arm.segmentation_id_map[i].name for i in ids if i in arm.segmentation_id_map}
    assert {"table", "top_drawer", "door", "butter"} <= names
    play(env, random_actions(env, 5))
    assert not torch.equal(arm.observe()["eye_in_hand_rgb"]["rgb"], first["eye_in_hand_rgb"]["rgb"])
    for bad in ("state", "none", "smell"):
        with pytest.raises(ValueError, match="unknown mode"):
            arm.observe(bad)
    env.close()


def test_what_is_observed_is_what_the_observation_mode_gives() -> None:
    blind: Any = predimem.envs.arena.make(10, obs_mode="none", render_backend="auto", image_px=32)
    seeing: Any = predimem.envs.arena.make(10, obs_mode="rgbd", image_px=32)
    blind.reset(seed=1)
    data = seeing.reset(seed=1)[0]["sensor_data"]
    for name, textures in blind.unwrapped.observe("rgbd").items():
        assert set(textures) == {"rgb", "depth"} == set(data[name])
        assert all(torch.equal(textures[key], data[name][key]) for key in textures)
    blind.close()
    seeing.close()


def test_observing_without_a_renderer_is_refused(env: Any) -> None:
    with pytest.raises(ValueError, match="render_backend='auto'"):
        env.unwrapped.observe()


# ---- many worlds


@pytest.mark.skipif(not torch.cuda.is_available(), reason="PhysX on a GPU needs a CUDA GPU, and this machine has none")
@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
def test_many_worlds_on_a_gpu_are_the_same_as_one(task: Any) -> None:
    env: Any = predimem.envs.arena.make(task.task_id, obs_mode="state", num_envs=4)
    seeds = [3, 4, 5, 6]
    observation, info = env.reset(seed=seeds)
    world = env.unwrapped
    assert observation.shape[0] == 4 and info["stage"].shape == (4,) and info["stage"].device == world.device
    for i, seed in enumerate(seeds):  # the same layouts as on a CPU
        layout = draw_layout(task, seed)
        assert world.variant(i) == task.variants[layout.variant]
        for name, (position, _) in {**layout.objects, **layout.fixtures}.items():
            assert np.allclose(world.world().position_m[name][i].cpu(), position, atol=1e-4)
    for _ in range(10):
        _, reward, terminated, truncated, info = env.step(env.action_space.sample() * 0.1)
    assert reward.shape == terminated.shape == truncated.shape == (4,)
    assert info["elapsed_steps"].tolist() == [10] * 4

    state = world.get_state_dict()
    env.reset(options={"env_idx": torch.tensor([1, 3])})
    assert world.elapsed_steps.tolist() == [10, 0, 10, 0]
    rows = {"env_idx": torch.tensor([1])}
    one = _rows(state, [1])
    world.set_state_dict(one, rows["env_idx"])
    assert world.elapsed_steps.tolist() == [10, 10, 10, 0]
    kept = world.get_state_dict()
    for part in ("actors", "articulations"):
        for name, value in state[part].items():
            assert torch.allclose(kept[part][name][:3], value[:3], atol=1e-3), name
    env.close()


def _rows(state: dict[str, Any], rows: list[int]) -> dict[str, Any]:
    return {key: _rows(value, rows) if isinstance(value, dict) else value[rows] for key, value in state.items()}

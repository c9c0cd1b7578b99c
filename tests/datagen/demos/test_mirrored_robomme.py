"""Episodes of RoboMME on the other side of the table: arm, images and words are mirrored together."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from datagen.command import KINDS, make_worker
from datagen.demos.mirrored_robomme import MirroredRobommeConfig, mirrored, mirrored_joints
from predimem.core.episode_folder import episode_path, load_episodes
from predimem.core.episode_writer import save_episode
from predimem.core.frames import Frames
from predimem.envs.arena.robot.arm import Arm
from tests.datagen.demos.test_edited_robomme import GREEN, RED, episode
from tests.datagen.experts import arena

SWAPPED = (2, 1, 0)  # red and blue


def source():
    made = episode("ButtonUnmask", {(3, 5): RED, (8, 9): GREEN}, [(3, 5), (8, 9)])
    state = np.tile(np.arange(12, dtype=np.float32) / 10, (2, 1))
    images = {**made.images, "hand_camera": Frames(np.zeros((1, 32, 32, 3), np.uint8), np.array([0, 0]))}
    return replace(made, state=state, actions=state[:, :8].copy(), images=images)


def test_images_and_words_are_on_the_other_side() -> None:
    before, after = source(), mirrored(source(), SWAPPED)
    assert [span.label for span in after.subtasks] == [
        "pick up the container at row 3 column 10",
        "pick up the container at row 8 column 6",
    ]
    assert after.instruction.endswith("hiding the blue cube")
    assert set(after.images) == {"base_camera"}, "the wrist camera would be on the wrong side of the hand"
    shown, was = after.images["base_camera"][0], before.images["base_camera"][0]
    assert shown[7, 21].tolist() == [0, 0, 150] and was[7, 10].tolist() == list(RED)
    assert shown[17, 13].tolist() == list(GREEN)
    assert shown[0, -1].tolist() == [200] * 3, "the light comes from the other side as well"


def test_states_and_actions_are_those_of_the_mirrored_arm() -> None:
    before, after = source(), mirrored(source(), SWAPPED)
    np.testing.assert_allclose(after.state[0, :7], [0, 0.1, -0.2, 0.3, -0.4, 0.5, np.pi / 2 - 0.6], atol=1e-6)
    np.testing.assert_allclose(after.state[0, 7:], [0.8, 0.7, 0.9, -1.0, 1.1], atol=1e-6)
    np.testing.assert_allclose(after.actions[:, :7], after.state[:, :7])
    assert (after.actions[:, 7] == before.actions[:, 7]).all() and after.state.dtype == np.float32
    np.testing.assert_array_equal(before.state, source().state)


def test_the_arm_is_its_own_mirror_image() -> None:
    env = arena(10, 0)
    try:
        kinematics = Arm(env).kinematics
        rng, sides = np.random.default_rng(0), np.diag([1.0, -1.0, 1.0])
        for joints in rng.uniform(-1, 1, (20, 7)) + np.array([0, 0, 0, -1.6, 0, 1.6, 0.8]):
            position, rotation = kinematics.forward(joints)
            across, turned = kinematics.forward(mirrored_joints(joints[None])[0])
            np.testing.assert_allclose(across, sides @ position, atol=1e-5)
            np.testing.assert_allclose(turned, sides @ rotation @ sides, atol=1e-5)
    finally:
        env.close()


def test_the_worker_mirrors_each_episode_once(tmp_path: Path) -> None:
    sources, out = tmp_path / "noisy", tmp_path / "mirrored"
    one_row = episode("PickHighlight", {(3, 5): RED, (3, 9): RED}, [(3, 5), (3, 9)])
    for made in (source(), *(replace(source(), task=task) for task in ("StopCube", "BinFill")), one_row):
        save_episode(episode_path(sources, made.task, 1000), made)
    config = MirroredRobommeConfig(sources=str(sources), out=str(out))
    assert KINDS["mirrored_robomme"] is MirroredRobommeConfig
    worker, jobs = make_worker(config.for_workers()), {job.task: job for job in config.jobs()}
    assert set(jobs) == {"ButtonUnmask", "BinFill", "PickHighlight"}, "StopCube is none that can be mirrored"
    outcomes = {task: worker.play(job) for task, job in jobs.items()}
    assert not outcomes["PickHighlight"].kept and outcomes["PickHighlight"].cause.endswith("in another order")
    binned, unmasked = load_episodes(out)
    assert [one.task for one in (binned, unmasked)] == ["BinFill", "ButtonUnmask"]
    assert unmasked.seed == 1000 and unmasked.metadata["edit"]["mirrored"]
    assert binned.metadata["edit"]["channels"] == [0, 1, 2], "BinFill takes colours in an order of its own"
    assert binned.instruction == source().instruction


@pytest.mark.parametrize("order", [(0, 1, 2), (1, 2, 0)])
def test_twice_mirrored_is_the_first(order: tuple[int, int, int]) -> None:
    there = mirrored(source(), order)
    first, second, third = np.argsort(order).tolist()
    back = mirrored(there, (first, second, third))
    np.testing.assert_allclose(back.state, source().state, atol=1e-6)
    np.testing.assert_array_equal(back.images["base_camera"][0], source().images["base_camera"][0])
    assert back.subtasks == source().subtasks and back.instruction == source().instruction

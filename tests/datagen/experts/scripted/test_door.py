"""The microwave's door is opened beyond a right angle, and shut."""

import numpy as np
import pytest
import torch

from datagen.experts.scripted.door import close_door, open_door
from datagen.experts.scripted.execute import run
from datagen.experts.scripted.true_scene import TrueScene
from predimem.envs.arena.fixtures import DOOR
from predimem.envs.arena.predicates import Closed, Opened
from predimem.envs.arena.robot.arm import Arm
from tests.datagen.experts import arena

STEPS = 240  # two thirds of what the task leaves for it


@pytest.mark.parametrize("seed, control_mode", [(0, "pd_joint_pos"), (2, "pd_ee_delta_pose")])
def test_the_door_is_opened_and_closed(seed: int, control_mode: str) -> None:
    env = arena(20, seed, control_mode)
    arm, scene = Arm(env), TrueScene(env)
    objects = {name: scene.position_m(name) for name in scene.objects}
    for motion, done in ((open_door, Opened), (close_door, Closed)):
        assert not scene.holds(done(DOOR))
        assert run(env, arm, motion(arm, scene)) <= STEPS
        assert scene.holds(done(DOOR))
        np.testing.assert_allclose(arm.true_position, arm.home_position, atol=0.01)
    for name, position in objects.items():
        np.testing.assert_allclose(scene.position_m(name), position, atol=0.005)
    env.close()


@pytest.mark.parametrize("motion, done", [(open_door, Opened), (close_door, Closed)])
def test_a_door_that_was_left_ajar(motion, done) -> None:
    env = arena(20, 3)
    arm, scene = Arm(env), TrueScene(env)
    env.scene.articulations["microwave"].set_qpos(torch.tensor([[0.5]]))
    run(env, arm, motion(arm, scene))
    assert scene.holds(done(DOOR))
    env.close()

"""Motions arrive where they are commanded, in both control modes."""

import numpy as np
import pytest

from datagen.experts.scripted.execute import run
from predimem.envs.arena.robot.arm import CLOSED, Arm
from predimem.envs.arena.robot.rotations import angle_between_rad, top_down
from tests.datagen.experts import arena


@pytest.mark.parametrize("control_mode", ["pd_joint_pos", "pd_ee_delta_pose"])
def test_it_arrives(control_mode: str) -> None:
    env = arena(10, 1, control_mode)
    arm = Arm(env)
    far = np.array([-0.35, 0.30, 0.30])
    for motion, target in (
        (arm.move(np.array([-0.1, 0.1, 0.25]), top_down(-1.2), settle=4), [-0.1, 0.1, 0.25]),
        (arm.travel(far, top_down(-1.5), settle=4), far),
        (arm.rise(0.36, settle=4), [*far[:2], 0.36]),
        (arm.rise(0.2, settle=4), [*far[:2], 0.36]),  # never down
    ):
        run(env, arm, motion)
        np.testing.assert_allclose(arm.true_position, target, atol=0.008)
        assert angle_between_rad(arm.true_rotation, arm.rotation) < 0.05
    run(env, arm, arm.go_home())
    np.testing.assert_allclose(arm.position, arm.home_position, atol=1e-3)
    action = arm.action()
    assert action.dtype == np.float32 and action.shape == (env.action_space.shape or ())[-1:]
    env.close()


def test_the_gripper_closes() -> None:
    env = arena(10, 1)
    arm = Arm(env)
    assert arm.finger_gap_m == pytest.approx(0.08, abs=1e-3)
    assert run(env, arm, arm.grip(CLOSED, steps=10)) == 10
    assert arm.finger_gap_m < 0.005
    env.close()


def test_the_arm_goes_on_after_an_unreachable_command() -> None:
    env = arena(10, 1)
    arm = Arm(env)
    run(env, arm, arm.move(np.array([1.0, 0.0, 0.2]), settle=0))
    assert np.linalg.norm(arm.true_position - [1.0, 0.0, 0.2]) > 0.1
    run(env, arm, arm.go_home())
    np.testing.assert_allclose(arm.true_position, arm.home_position, atol=0.01)
    env.close()

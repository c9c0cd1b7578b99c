"""The model against the simulation itself, and inverse kinematics against the forward one."""

from collections.abc import Iterator

import numpy as np
import pytest
import torch
from scipy.spatial.transform import Rotation

from predimem.envs.arena.robot.arm import Arm
from predimem.envs.arena.robot.kinematics import HIGH_RAD, LOW_RAD, ArmKinematics
from predimem.envs.arena.robot.rotations import top_down
from predimem.envs.arena.scene.environment import ArenaEnv
from predimem.envs.arena.scene.reading import tcp_pose
from tests.datagen.experts import arena


@pytest.fixture(scope="module")
def env() -> Iterator[ArenaEnv]:
    made = arena(10, 0)
    yield made
    made.close()


@pytest.fixture
def kinematics(env: ArenaEnv) -> ArmKinematics:
    return Arm(env).kinematics


@pytest.mark.parametrize("seed", range(3))
def test_forward_is_where_the_simulated_gripper_is(env: ArenaEnv, kinematics: ArmKinematics, seed: int) -> None:
    q = np.random.default_rng(seed).uniform(LOW_RAD, HIGH_RAD)
    env.agent.robot.set_qpos(torch.tensor([[*q, 0.04, 0.04]], dtype=torch.float32))
    position, rotation = kinematics.forward(q)
    tcp = tcp_pose(env)[0]
    np.testing.assert_allclose(position, tcp[:3], atol=2e-5)
    expected = Rotation.from_quat(tcp[[4, 5, 6, 3]]).as_matrix()
    np.testing.assert_allclose(rotation, expected, atol=2e-4)


@pytest.mark.parametrize("xy", [(-0.38, 0.35), (-0.15, 0.0), (0.0, -0.12), (-0.4, -0.36)])
@pytest.mark.parametrize("height_m", [0.02, 0.35])
def test_inverse_reaches_what_forward_says(kinematics: ArmKinematics, xy: tuple[float, float], height_m: float) -> None:
    target, rotation = np.array([*xy, height_m]), top_down(-np.pi / 2)
    q, reached = kinematics.solve(target, rotation)
    assert reached and (q >= LOW_RAD).all() and (q <= HIGH_RAD).all()
    position, turned = kinematics.forward(q)
    np.testing.assert_allclose(position, target, atol=1e-3)
    np.testing.assert_allclose(turned, rotation, atol=1e-2)


def test_out_of_reach_is_said(kinematics: ArmKinematics) -> None:
    assert not kinematics.solve(np.array([1.0, 0.0, 0.1]), top_down(-np.pi / 2))[1]


def test_room_is_the_distance_to_the_nearest_limit(kinematics: ArmKinematics) -> None:
    q = (LOW_RAD + HIGH_RAD) / 2
    q[5] = HIGH_RAD[5] - 0.1
    assert kinematics.room_rad(q) == pytest.approx(0.1)

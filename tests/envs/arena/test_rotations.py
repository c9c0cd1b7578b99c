"""Against SciPy, and by the directions that the gripper's axes must have."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from predimem.envs.arena.robot import rotations as r

RANDOM = [Rotation.from_rotvec(v) for v in np.random.default_rng(0).uniform(-1.8, 1.8, (20, 3))]


@pytest.mark.parametrize("rotation", RANDOM)
def test_vectors_and_matrices_are_scipys(rotation: Rotation) -> None:
    np.testing.assert_allclose(r.rotation_vector(rotation.as_matrix()), rotation.as_rotvec(), atol=1e-9)
    np.testing.assert_allclose(r.rotation_matrix(rotation.as_rotvec()), rotation.as_matrix(), atol=1e-9)


def test_small_and_half_turns() -> None:
    np.testing.assert_array_equal(r.rotation_matrix(np.zeros(3)), np.eye(3))
    tiny = np.array([1e-10, 0, -2e-10])
    np.testing.assert_allclose(r.rotation_vector(r.rotation_matrix(tiny)), 0.0, atol=1e-9)
    assert r.angle_between_rad(np.eye(3), r.FLIP) == pytest.approx(np.pi)
    assert r.angle_between_rad(RANDOM[0].as_matrix(), RANDOM[1].as_matrix()) == pytest.approx(
        (RANDOM[0].inv() * RANDOM[1]).magnitude()
    )


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_between_is_the_shortest_way(share: float) -> None:
    start, end = RANDOM[2], RANDOM[3]
    expected = start * Rotation.from_rotvec(share * (start.inv() * end).as_rotvec())
    np.testing.assert_allclose(r.between(start.as_matrix(), end.as_matrix(), share), expected.as_matrix(), atol=1e-9)


@pytest.mark.parametrize("yaw", [-2.0, 0.0, 0.5])
def test_gripper_frames_are_rotations_with_the_right_axes(yaw: float) -> None:
    down, ahead = r.top_down(yaw), r.forward(0.4, yaw)
    for frame in (down, ahead):
        np.testing.assert_allclose(frame @ frame.T, np.eye(3), atol=1e-12)
        assert np.linalg.det(frame) == pytest.approx(1.0)
    np.testing.assert_allclose(down[:, 2], [0, 0, -1], atol=1e-12)
    np.testing.assert_allclose(down[:, 1], [np.cos(yaw), np.sin(yaw), 0], atol=1e-12)
    assert np.arcsin(-ahead[2, 2]) == pytest.approx(0.4)
    assert np.arctan2(ahead[1, 2], ahead[0, 2]) == pytest.approx(yaw)
    assert ahead[2, 1] == pytest.approx(0.0)  # it closes level


def test_nearest() -> None:
    grasp = r.top_down(0.3)
    assert r.nearest([grasp @ r.FLIP, grasp], r.top_down(0.0)) is grasp

"""The TCP's pose in a state."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from actor.tiny.pose import poses


def test_roll_pitch_and_yaw_are_about_the_fixed_axes() -> None:
    angles = np.random.default_rng(0).uniform(-3.1, 3.1, (20, 3))
    state = np.concatenate([np.arange(60.0).reshape(20, 3), angles, np.zeros((20, 1))], axis=1)
    found = poses(state, "rpy")
    matrices = Rotation.from_euler("xyz", angles).as_matrix()
    np.testing.assert_allclose(found[:, :3], state[:, :3])
    np.testing.assert_allclose(found[:, 3:6], matrices[:, :, 0], atol=1e-6)
    np.testing.assert_allclose(found[:, 6:], matrices[:, :, 1], atol=1e-6)
    assert found.dtype == np.float32


def test_columns_are_taken_as_they_are_and_copied() -> None:
    state = np.arange(22, dtype=np.float32).reshape(2, 11)
    found = poses(state, "columns")
    np.testing.assert_array_equal(found, state[:, :9])
    found[:] = 0
    assert state[1, 8] == 19


def test_a_half_turn_is_the_same_pose_whatever_its_sign() -> None:
    state = np.array([[0, 0, 0, np.pi, 0.1, 0.2], [0, 0, 0, -np.pi, 0.1, 0.2]])
    assert np.abs(np.diff(poses(state, "rpy"), axis=0)).max() == pytest.approx(0, abs=1e-6)


def test_a_position_alone_may_stand_anywhere_and_is_of_a_gripper_that_points_down() -> None:
    state = np.arange(24, dtype=np.float32).reshape(2, 12)
    found = poses(state, "down", start=9)
    np.testing.assert_array_equal(found[:, :3], state[:, 9:])
    x, y = found[0, 3:6], found[0, 6:]
    np.testing.assert_allclose(np.cross(x, y), [0, 0, -1])

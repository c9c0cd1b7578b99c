"""The state's conversion, against SciPy's rotations."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from datagen.export.arena_state import (
    DIM,
    NAMES,
    arena_state,
    matrices_from_columns,
    robot_arrays,
    rotation_matrices,
    rotation_vectors,
)

AXES = np.array([[1.0, 0, 0], [0, -1, 0], [0, 0, 1], [0.6, 0, 0.8], [-0.48, 0.64, 0.6]])
ANGLES_RAD = np.array([0.0, 1e-9, 1e-4, 0.5, 2.0, np.pi - 1e-6, np.pi])
VECTORS = (AXES[:, None] * ANGLES_RAD[None, :, None]).reshape(-1, 3)


def test_rotations_agree_with_scipy() -> None:
    expected = Rotation.from_rotvec(VECTORS)
    np.testing.assert_allclose(rotation_matrices(VECTORS), expected.as_matrix(), atol=1e-14)
    vectors = rotation_vectors(expected.as_matrix())
    assert np.linalg.norm(vectors, axis=1).max() <= np.pi + 1e-12
    np.testing.assert_allclose(Rotation.from_rotvec(vectors).as_matrix(), expected.as_matrix(), atol=1e-12)
    unique = np.linalg.norm(VECTORS, axis=1) < 3.1  # half a turn about an axis is one about its opposite
    np.testing.assert_allclose(vectors[unique], VECTORS[unique], atol=1e-12)


def test_two_columns_give_the_whole_matrix_back() -> None:
    matrices = Rotation.random(50, random_state=0).as_matrix()
    columns = matrices[:, :, :2].transpose(0, 2, 1).reshape(-1, 6)
    np.testing.assert_allclose(matrices_from_columns(columns), matrices, atol=1e-14)
    np.testing.assert_allclose(matrices_from_columns(columns * 1.5), matrices, atol=1e-14)  # made orthonormal


def test_a_state_becomes_robot_arrays_and_comes_back() -> None:
    down = Rotation.from_rotvec([[np.pi, 0, 0], [0, np.pi / 2, 0]]).as_matrix()
    columns = down[:, :, :2].transpose(0, 2, 1).reshape(-1, 6)
    joints = np.arange(14).reshape(2, 7) / 10
    state = np.concatenate([[[0.1, 0.2, 0.3], [-0.4, 0, 0.5]], columns, [[0.08], [0.03]], joints], axis=1)
    state = state.astype(np.float32)
    arrays = robot_arrays(state)
    np.testing.assert_allclose(arrays["ee_states"][0], [0.1, 0.2, 0.3, np.pi, 0, 0], atol=1e-6)
    np.testing.assert_allclose(arrays["ee_states"][1], [-0.4, 0, 0.5, 0, np.pi / 2, 0], atol=1e-6)
    np.testing.assert_allclose(arrays["gripper_states"], [[0.04, -0.04], [0.015, -0.015]], atol=1e-8)
    np.testing.assert_array_equal(arrays["joint_states"], state[:, 10:])
    back = arena_state(**arrays)
    assert back.dtype == np.float32
    np.testing.assert_allclose(back, state, atol=1e-7)
    same_sign = arrays | {"gripper_states": np.abs(arrays["gripper_states"])}
    np.testing.assert_array_equal(arena_state(**same_sign), back)


def test_the_names_are_those_of_the_arenas_state() -> None:
    assert len(NAMES) == DIM == 17 and len(set(NAMES)) == 17
    assert (NAMES[3], NAMES[5], NAMES[6], NAMES[9]) == (
        "tcp_rotation_00",
        "tcp_rotation_20",
        "tcp_rotation_01",
        "gripper_opening_m",
    )


def test_another_state_is_refused() -> None:
    with pytest.raises(ValueError, match=r"\[T, 17\], got \(3, 7\)"):
        robot_arrays(np.zeros((3, 7)))

"""Eq. 1-3 on trajectories whose keyframes can be counted by hand."""

import numpy as np
import pytest

from datagen.keyframes import (
    KeyframeConfig,
    extract_keyframes,
    gripper_transitions,
    kinematic_inflections,
    onsets,
    velocities,
)

OPEN, CLOSED = 0.08, 0.0


def path(*steps_m: tuple[float, float, float]) -> np.ndarray:
    """Positions that start at the origin and move by these steps."""
    return np.cumsum(np.array([(0.0, 0.0, 0.0), *steps_m]), axis=0)


def test_velocity_is_the_backward_difference() -> None:
    got = velocities(path((0.01, 0, 0), (0, -0.02, 0)), hz=20.0)
    np.testing.assert_allclose(got, [[0, 0, 0], [0.2, 0, 0], [0, -0.4, 0]])


def test_gripper_transitions_are_eq_2() -> None:
    closed = np.array([False, False, True, True, False])
    assert gripper_transitions(closed).tolist() == [False, False, True, False, True]


def test_speed_below_epsilon_is_flagged_and_epsilon_itself_is_not() -> None:
    velocity = np.array([[0.2, 0, 0], [0.1, 0, 0], [0.09, 0, 0]])
    config = KeyframeConfig(speed_epsilon_m_s=0.1)
    assert kinematic_inflections(velocity, config).tolist() == [False, False, True]


@pytest.mark.parametrize(("turn_deg", "flagged"), [(59.0, False), (61.0, True), (180.0, True)])
def test_direction_changes_beyond_theta_are_flagged(turn_deg: float, flagged: bool) -> None:
    turn = np.deg2rad(turn_deg)
    velocity = np.array([[1.0, 0, 0], [np.cos(turn), np.sin(turn), 0]])
    config = KeyframeConfig(direction_theta_deg=60.0)
    assert kinematic_inflections(velocity, config).tolist() == [False, flagged]


def test_a_zero_velocity_has_no_direction() -> None:
    velocity = np.array([[0.0, 0, 0], [1.0, 0, 0]])
    assert kinematic_inflections(velocity, KeyframeConfig()).tolist() == [True, False]


def test_runs_become_their_onset() -> None:
    assert onsets(np.array([True, True, False, True, False, False, True, True])) == (0, 3, 6)
    assert onsets(np.zeros(4, bool)) == ()


def test_union_of_rest_turn_and_gripper() -> None:
    go, back, rest = (0.02, 0, 0), (-0.02, 0, 0), (0, 0, 0)
    tcp = path(rest, rest, go, go, back, back, go, rest, rest)
    gripper = np.array([OPEN, OPEN, OPEN, OPEN, OPEN, OPEN, OPEN, OPEN, OPEN, CLOSED])
    # 0-2 at rest; 5 and 7 reverse; from 8 at rest, with the gripper closing at 9 inside that run.
    assert extract_keyframes(tcp, gripper, hz=20.0) == (0, 5, 7)
    # Moving on instead of stopping at the end: the gripper alone marks step 9.
    tcp = path(rest, rest, go, go, back, back, go, go, go)
    assert extract_keyframes(tcp, gripper, hz=20.0) == (0, 5, 7, 9)


def test_bad_input_says_what_was_expected() -> None:
    with pytest.raises(ValueError, match=r"expected tcp_m \[T, 3\]"):
        extract_keyframes(np.zeros((4, 2)), np.zeros(4), 20.0)
    with pytest.raises(ValueError, match=r"expected tcp_m \[T, 3\]"):
        extract_keyframes(np.zeros((4, 3)), np.zeros(3), 20.0)
    with pytest.raises(ValueError, match="direction_theta_deg"):
        KeyframeConfig(direction_theta_deg=0.0)

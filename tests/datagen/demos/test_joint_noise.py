"""Bursts of noise on joint angles."""

from __future__ import annotations

import numpy as np

from datagen.demos.joint_noise import BURST_STEPS, PAUSE_STEPS, JointNoise

ACTION = np.arange(8, dtype=np.float32)


def offsets(std_rad: float, seed: int, steps: int = 2000) -> np.ndarray:
    noise = JointNoise(std_rad, 7, seed)
    return np.stack([noise.disturbed(ACTION) - ACTION for _ in range(steps)])


def test_noise_comes_in_bursts_with_pauses_and_leaves_the_gripper_alone() -> None:
    found = offsets(0.04, 0)
    assert not found[:, 7].any()
    moved = (found != 0).any(1)
    lengths = np.diff(np.flatnonzero(np.diff(np.concatenate([[False], moved, [False]]).astype(int))))
    bursts, pauses = lengths[::2], lengths[1::2]
    assert BURST_STEPS[0] <= bursts[:-1].min() and bursts[:-1].max() <= BURST_STEPS[1]
    assert PAUSE_STEPS[0] <= pauses.min() and pauses.max() <= PAUSE_STEPS[1]


def test_a_burst_swells_to_the_given_size_and_fades() -> None:
    found = offsets(0.04, 1)
    assert 0.04 < np.abs(found).max() < 0.2
    assert np.abs(np.diff(found, axis=0)).max() < 0.6 * np.abs(found).max()


def test_a_seed_repeats_its_noise_and_none_is_none() -> None:
    np.testing.assert_array_equal(offsets(0.04, 2), offsets(0.04, 2))
    assert (offsets(0.04, 2) != offsets(0.04, 3)).any() and not offsets(0.0, 2).any()

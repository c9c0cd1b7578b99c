"""Noise on what a demonstration commands, which its rows do not hold: they show how to come back to the way."""

from __future__ import annotations

import numpy as np

PAUSE_STEPS, BURST_STEPS = (10, 40), (6, 14)  # of control steps; drawn anew each time


class JointNoise:
    """Bursts of noise on absolute joint angles: each swells and fades, in a direction of its own.

    The next waypoint is absolute, so that it mends what a burst did, and it is what the rows hold (DART,
    arXiv:1703.09327).
    """

    def __init__(self, std_rad: float, joints: int, seed: int):
        """std_rad: of each joint, at the height of a burst."""
        self._std_rad, self._joints, self._rng = std_rad, joints, np.random.default_rng(seed)
        self._begin()

    def disturbed(self, action: np.ndarray) -> np.ndarray:
        """The action of the next control step, float32 [A], whose first numbers are the joints' angles in rad."""
        if self._step >= self._pause + self._burst:
            self._begin()
        phase = (self._step - self._pause + 0.5) / self._burst
        self._step += 1
        if phase < 0:
            return action
        noisy = np.array(action, np.float32)
        noisy[: self._joints] += np.sin(np.pi * phase) * self._offset
        return noisy

    def _begin(self) -> None:
        self._step, self._pause = 0, int(self._rng.integers(*PAUSE_STEPS, endpoint=True))
        self._burst = int(self._rng.integers(*BURST_STEPS, endpoint=True))
        self._offset = self._rng.normal(0.0, self._std_rad, self._joints)

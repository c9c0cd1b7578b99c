"""Keyframes of a trajectory by physical events: Eq. 1-3 of RoboMemArena (arXiv:2605.10921, §3.2, stage 3).

The equations flag single frames; a robot at rest is flagged in every one of them. A run of
consecutive flagged frames is therefore one keyframe, its first frame: the onset is what can be
recognised from the past alone, when the planner has to nominate it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class KeyframeConfig:
    """speed_epsilon_m_s: ε of Eq. 3. direction_theta_deg: θ of Eq. 3. gripper_closed_below_m: the
    gripper counts as closed (g = 1 of Eq. 2) when its opening is smaller than this: it opens to 0.08 m, and what
    it holds is up to 0.072 m wide."""

    speed_epsilon_m_s: float = 0.05
    direction_theta_deg: float = 90.0
    gripper_closed_below_m: float = 0.075

    def __post_init__(self) -> None:
        if self.speed_epsilon_m_s < 0:
            raise ValueError(f"speed_epsilon_m_s must be >= 0, got {self.speed_epsilon_m_s}")
        if not 0 < self.direction_theta_deg <= 180:
            raise ValueError(f"direction_theta_deg must be in (0, 180], got {self.direction_theta_deg}")


def velocities(positions_m: np.ndarray, hz: float) -> np.ndarray:
    """float64 [T, 3] in m/s from TCP positions [T, 3]: backward differences, 0 at step 0 (after a reset)."""
    positions_m = np.asarray(positions_m, np.float64)
    return np.diff(positions_m, axis=0, prepend=positions_m[:1]) * hz


def gripper_transitions(closed: np.ndarray) -> np.ndarray:
    """K_phys, Eq. 2: bool [T], true where the gripper state [T] differs from the step before."""
    closed = np.asarray(closed, bool)
    return np.concatenate([[False], closed[1:] != closed[:-1]])


def kinematic_inflections(velocity_m_s: np.ndarray, config: KeyframeConfig) -> np.ndarray:
    """K_kin, Eq. 3: bool [T], true where |v_t| < ε or cos(v_t, v_t-1) < cos θ.

    The cosine of a zero vector is not defined: such a frame is flagged by its speed or not at all.
    """
    velocity = np.asarray(velocity_m_s, np.float64)
    speed = np.linalg.norm(velocity, axis=1)
    slow = speed < config.speed_epsilon_m_s
    dots = np.einsum("ij,ij->i", velocity[1:], velocity[:-1])
    norms = speed[1:] * speed[:-1]
    cosine = np.divide(dots, norms, out=np.ones_like(dots), where=norms > 0)
    turned = cosine < np.cos(np.deg2rad(config.direction_theta_deg))
    return slow | np.concatenate([[False], turned])


def onsets(flagged: np.ndarray) -> tuple[int, ...]:
    """The first index of every run of consecutive true values in bool [T]."""
    flagged = np.asarray(flagged, bool)
    before = np.concatenate([[False], flagged[:-1]])
    return tuple(int(t) for t in np.flatnonzero(flagged & ~before))


def extract_keyframes(
    tcp_m: np.ndarray, gripper_m: np.ndarray, hz: float, config: KeyframeConfig | None = None
) -> tuple[int, ...]:
    """K = K_phys ∪ K_kin (Eq. 1) with runs merged to their onset, as steps counted from 0.

    tcp_m: [T, 3], gripper_m: [T] opening, both per control step at `hz`.
    Raises ValueError if their lengths differ or T is 0.
    """
    config = config or KeyframeConfig()
    tcp_m, gripper_m = np.asarray(tcp_m), np.asarray(gripper_m)
    if tcp_m.ndim != 2 or tcp_m.shape[1] != 3 or len(tcp_m) == 0 or gripper_m.shape != (len(tcp_m),):
        raise ValueError(
            f"expected tcp_m [T, 3] and gripper_m [T] with T >= 1, got {tcp_m.shape} and {gripper_m.shape}"
        )
    closed = gripper_m < config.gripper_closed_below_m
    flagged = gripper_transitions(closed) | kinematic_inflections(velocities(tcp_m, hz), config)
    return onsets(flagged)

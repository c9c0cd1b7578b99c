"""Keyframes by the motion of a robot's arms, each by Eq. 1 to 3, united."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from datagen.keyframes import KeyframeConfig, extract_keyframes


@dataclass(frozen=True)
class Arm:
    """Which numbers of the state are an arm's TCP position [3] in m, and the opening of its gripper in m."""

    tcp: tuple[int, int, int]
    gripper: int


def keyframes_of_motion(state: np.ndarray, arms: Sequence[Arm], hz: float, config: KeyframeConfig) -> list[int]:
    """Sorted; [] without arms. state: [T, D]. Raises ValueError for an entry that the state does not have."""
    outside = [entry for arm in arms for entry in (*arm.tcp, arm.gripper) if not 0 <= entry < state.shape[1]]
    if outside:
        raise ValueError(f"the state has {state.shape[1]} numbers, 0 to {state.shape[1] - 1}: there is no {outside[0]}")
    each = [extract_keyframes(state[:, list(arm.tcp)], state[:, arm.gripper], hz, config) for arm in arms]
    return sorted(set().union(*each))


def arms_of(tcp: Sequence[str], gripper: Sequence[int]) -> tuple[Arm, ...]:
    """From the options --tcp and --gripper. Raises ValueError where they do not fit together."""
    if len(tcp) != len(gripper):
        raise ValueError("keyframes by motion need both --tcp and --gripper, once for each arm")
    return tuple(Arm(_three(places), opening) for places, opening in zip(tcp, gripper, strict=True))


def _three(places: str) -> tuple[int, int, int]:
    try:
        x, y, z = (int(place) for place in places.split(","))
    except ValueError as error:
        raise ValueError(f"--tcp: expected three places in the state, such as 0,1,2, got {places}") from error
    return x, y, z

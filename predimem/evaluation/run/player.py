"""Defines what an evaluation needs of a player of episodes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from predimem.core.interfaces import Subscriber
from predimem.core.types import EpisodeResult


class Player(Protocol):
    """Plays episodes in one process: builds environments and models once each and keeps them."""

    def load(self, agents: Sequence[str]) -> None:
        """Load the models of these agents and check what can be checked without an environment.

        Raises SetupError or ValueError for an agent that cannot play.
        """
        ...

    def play(self, task: str, agent: str, seed: int, subscribers: Sequence[Subscriber]) -> EpisodeResult: ...

    def true_keyframes(self, states: np.ndarray, hz: float) -> Sequence[int] | None:
        """The steps of the keyframes of RoboMemArena's Eq. 1-3 on a trajectory.

        states: of the robot, float32 [T, D], at `hz`. None where the benchmark does not say where the gripper is.
        """
        ...

    def provenance(self) -> dict[str, Any]:
        """Plain JSON data: what results depend on (`benchmark_version`, weights' hashes, config). Cheap."""
        ...

    def close(self) -> None: ...

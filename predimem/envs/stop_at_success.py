"""Ending an episode at its first success."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from predimem.core.interfaces import Environment
from predimem.core.types import Observation, StepResult


class StopAtSuccess:
    """An `Environment` around another one, for benchmarks in which a success cannot be lost again."""

    def __init__(self, environment: Environment):
        self._environment = environment

    @property
    def instruction(self) -> str:
        return self._environment.instruction

    @property
    def action_dim(self) -> int:
        return self._environment.action_dim

    @property
    def horizon(self) -> int:
        return self._environment.horizon

    @property
    def control_hz(self) -> float:
        return self._environment.control_hz

    @property
    def camera_every(self) -> int | None:
        """That of the environment inside, where it can leave images out."""
        return self._environment.camera_every  # type: ignore[attr-defined]

    @camera_every.setter
    def camera_every(self, steps: int | None) -> None:
        self._environment.camera_every = steps  # type: ignore[attr-defined]

    def reset(self, seed: int) -> Observation:
        return self._environment.reset(seed)

    def step(self, action: np.ndarray) -> StepResult:
        result = self._environment.step(action)
        return replace(result, terminated=result.terminated or result.success)

    def hold_action(self, last: np.ndarray | None) -> np.ndarray:
        return self._environment.hold_action(last)

    def close(self) -> None:
        self._environment.close()

    def __getattr__(self, name: str) -> Any:
        """Whatever else the environment inside has, such as its privileged state."""
        return getattr(self._environment, name)

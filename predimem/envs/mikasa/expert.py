"""The families' scripts as agents: an expert that plays by itself, a low-level policy, and the oracle's subtasks.

All read the simulator's true state of a `MikasaEnvironment`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from predimem.core.interfaces import Expert
from predimem.core.types import ActionChunk, Observation
from predimem.envs.mikasa.families.family import Family


class FamilyExpert:
    """A family's controller with the true subtask, as a `predimem.core.interfaces.Expert`. It has no memory."""

    def __init__(self, environment: Any):
        self._environment, self._family = environment, known_family(environment)
        self.subtask = ""

    def reset(self) -> None:
        self.subtask = ""

    def action(self) -> np.ndarray:
        state = self._environment.true_state()
        self.subtask = self._family.subtask(state)
        return self._family.act(state, self.subtask)


class ExpertPolicy:
    """A family's controller as a low-level policy: one action for whatever subtask it is told."""

    def __init__(self, environment: Any):
        self._environment, self._family = environment, known_family(environment)

    def infer(self, observation: Observation, subtask: str) -> ActionChunk:
        action = self._family.act(self._environment.true_state(), subtask)
        return ActionChunk(observation.step, action[None], subtask)


def expert(environment: Any) -> Expert:
    """Who plays an environment's task with the true state: the family's own expert where it has one."""
    family = known_family(environment)
    return FamilyExpert(environment) if family.expert is None else family.expert(environment)


def expert_policy(environment: Any, config: object = None) -> ExpertPolicy:
    return ExpertPolicy(environment)


def true_subtask(environment: Any) -> Callable[[], str]:
    family = known_family(environment)
    return lambda: family.subtask(environment.true_state())


def known_family(environment: Any) -> Family:
    """Raises ValueError where no script plays the environment's task."""
    if environment.family is None:
        raise ValueError(
            f"no script plays {environment.task_id}; `predimem tasks --benchmark mikasa` says what there is"
        )
    return environment.family

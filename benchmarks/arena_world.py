"""An episode of the arena for other projects' loops, as the robot's own evaluation plays it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from predimem.core.types import Observation
from predimem.envs.arena.benchmark import ARENA, ArenaOptions
from predimem.envs.arena.suite import ArenaEnvironment
from predimem.envs.benchmark import EnvironmentRequest

CAMERA_EVERY = 2  # as in configs/eval/arena.yaml


class ArenaWorld:
    def __init__(self, task: str, seed: int) -> None:
        ARENA.prepare(images=True)
        made = ARENA.make_environment(ARENA.task_name(task), ArenaOptions(), EnvironmentRequest())
        assert isinstance(made, ArenaEnvironment)
        self._arena, self._seed = made, seed
        self._arena.camera_every = CAMERA_EVERY
        self.steps, self.success = 0, False
        self.reset()  # the instruction is the variant's, which the seed draws

    @property
    def instruction(self) -> str:
        return self._arena.instruction

    @property
    def horizon(self) -> int:
        return self._arena.horizon

    @property
    def action_dim(self) -> int:
        return self._arena.action_dim

    def reset(self) -> Observation:
        self.steps, self.success = 0, False
        return self._arena.reset(self._seed)

    def step(self, action: Sequence[float] | np.ndarray) -> tuple[Observation, bool]:
        """(observation, whether the episode is over)"""
        result = self._arena.step(np.asarray(action, np.float32))
        self.steps, self.success = self.steps + 1, result.success
        return result.observation, result.terminated or result.truncated

    def close(self) -> None:
        self._arena.close()

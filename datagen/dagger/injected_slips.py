"""Scripted skills with injected slips: an evaluation with them shows whether what was dropped is picked up again."""

from __future__ import annotations

from typing import Any

import numpy as np

from datagen.dagger.config import DisturbanceConfig
from datagen.dagger.faulty_policy import FaultyPolicy
from datagen.experts.scripted.policy import ScriptedPolicy
from predimem.core.types import ActionChunk, Observation

SALT = 0x511B  # keeps these draws apart from those of the layout


class SlippingPolicy:
    """Implements `Policy` as `ScriptedPolicy` does; `reset` after each reset of the environment.

    probability: with which the gripper opens on the way, each time that something has been lifted that
    cannot be poured; drawn from the episode's seed, so that the same seed and planner slip alike.
    """

    def __init__(self, env: Any, probability: float):
        """env: an `ArenaEnv` of one world, or a wrapper around one."""
        self._env = env.unwrapped
        self._config = DisturbanceConfig(dropped_share=probability, missed_share=0.0, pauses_per_minute=0.0)
        self._skills = ScriptedPolicy(self._env)
        self.reset()

    def reset(self) -> None:
        self._skills.reset()
        rng = np.random.default_rng((SALT, *self._env.episode_seeds()))
        self._faulty = FaultyPolicy(self._env, self._skills, self._config, rng)

    def infer(self, observation: Observation, subtask: str) -> ActionChunk:
        return self._faulty.infer(observation, subtask)

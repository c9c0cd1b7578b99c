"""What practice needs of the hand that knows the true state, and which there are."""

from __future__ import annotations

from typing import Any, Protocol

from datagen.dagger.config import PracticeConfig
from datagen.dagger.learned_policy import LearnedHand
from datagen.experts.memoryless.policy import ReactiveActor
from datagen.experts.scripted.policy import SkillActor
from predimem.agent.config import SKILLS
from predimem.core.interfaces import Policy
from predimem.core.types import ActionChunk, Observation
from predimem.envs.arena.robot.arm import Arm
from predimem.envs.arena.subtasks import Subtask


class OracleActor(Policy, Protocol):
    """doing: the subtask of the last motion, None before the first one. motion: its number, None when it has come to
    rest. arm: for reading."""

    @property
    def doing(self) -> Subtask | None: ...

    @property
    def motion(self) -> int | None: ...

    @property
    def arm(self) -> Arm: ...

    def still(self, observation: Observation) -> ActionChunk:
        """Instead of `infer` at a control step at which the arm shall stand still."""
        ...


def make_oracle(env: Any, config: PracticeConfig, learned: Policy | None) -> OracleActor:
    """env: an `ArenaEnv` of one world that has been reset. learned: the actor that the config names, if it does."""
    if learned is not None:
        return LearnedHand(env, learned, config.execute_steps)
    return SkillActor(env) if config.hand == SKILLS else ReactiveActor(env)

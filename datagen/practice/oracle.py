"""What practice needs of the hand that knows the true state, and which there are."""

from __future__ import annotations

from typing import Any, Protocol

from datagen.arena.subtasks import Subtask
from datagen.practice.config import SKILLS, PracticeConfig
from datagen.practice.learned_hand import LearnedHand
from datagen.skills.actor import SkillActor
from datagen.skills.arm import Arm
from datagen.skills.reactive.actor import ReactiveActor
from predimem.interfaces import Policy
from predimem.types import ActionChunk, Observation


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

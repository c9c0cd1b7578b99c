"""The low-level policies of DAgger data collection, and what it has to know of them."""

from __future__ import annotations

from typing import Any, Protocol

from datagen.dagger.config import PlannerDaggerConfig
from datagen.dagger.learned_policy import LearnedPolicy
from datagen.experts.memoryless.policy import MemorylessPolicy
from datagen.experts.scripted.policy import ScriptedPolicy
from predimem.agent.config import SKILLS
from predimem.core.interfaces import Policy
from predimem.core.types import ActionChunk, Observation
from predimem.envs.arena.robot.arm import Arm
from predimem.envs.arena.subtasks import Subtask


class TrackedPolicy(Policy, Protocol):
    """A policy that tells what it is doing."""

    @property
    def doing(self) -> Subtask | None:
        """The subtask of the last motion; None before the first one."""
        ...

    @property
    def motion(self) -> int | None:
        """The number of the motion that goes on; None when it has come to rest."""
        ...

    @property
    def arm(self) -> Arm:
        """For reading."""
        ...

    def still(self, observation: Observation) -> ActionChunk:
        """Instead of `infer` at a control step at which the arm shall stand still."""
        ...


def make_low_level_policy(env: Any, config: PlannerDaggerConfig, learned: Policy | None) -> TrackedPolicy:
    """The policy that a config names.

    env: an `ArenaEnv` of one world that has been reset.
    learned: the actor of the weights that the config names; None where it names a scripted policy.
    """
    if learned is not None:
        return LearnedPolicy(env, learned, config.execute_steps)
    return ScriptedPolicy(env) if config.low_level_policy == SKILLS else MemorylessPolicy(env)

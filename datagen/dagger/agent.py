"""The models that a DAgger data config names, and the agent that they make up, in the runtime of an evaluation."""

from __future__ import annotations

from typing import Any

import numpy as np

from datagen.dagger.config import PlannerDaggerConfig
from memory_bank import MemoryConfig, make_memory
from predimem.agent.clock import SimulatedClock
from predimem.agent.config import ORACLE, SCRIPTED
from predimem.agent.dual_system import DualSystemAgent, DualSystemConfig
from predimem.agent.worker import PlannerWorker
from predimem.core.interfaces import Planner, Policy
from predimem.core.weight_files import model_folder


def load_models(config: PlannerDaggerConfig) -> tuple[Any, Policy | None]:
    """The planner and the low-level policy that the config names; None for what is no model."""
    planner = policy = None
    if config.driver != ORACLE:
        from planner.decoding import load_planner

        planner = load_planner(model_folder(config.driver), threads=1)
    if config.low_level_policy not in SCRIPTED:
        from actor.policy import load_policy

        policy = load_policy(model_folder(config.low_level_policy))
    return planner, policy


def make_agent(
    config: PlannerDaggerConfig, planner: Planner, policy: Policy, memory: MemoryConfig, hold: np.ndarray
) -> DualSystemAgent:
    """An agent that asks `planner`, and does `hold` until there is an answer. The policy answers for the very step."""
    clock = SimulatedClock(0, config.s2_latency_steps)
    settings = DualSystemConfig(plan_every_steps=config.plan_every_steps)
    still = lambda last: hold if last is None else last  # noqa: E731
    return DualSystemAgent(make_memory(memory), PlannerWorker(planner, clock), policy, clock, still, settings)

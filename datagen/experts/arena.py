"""The arena's experts, as `predimem.envs.arena.benchmark` names them: each takes an environment of the arena."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from datagen.dagger.injected_slips import SlippingPolicy
from datagen.experts.memoryless.policy import MemorylessPolicy
from datagen.experts.scripted.policy import ScriptedPolicy
from datagen.experts.scripted.solver import OracleSolver, ScriptSolver
from datagen.experts.scripted.subtask_names import due_label
from predimem.agent.config import AgentConfig
from predimem.core.interfaces import Expert, Policy
from predimem.envs.arena.layout import draw_layout


def oracle(environment: Any) -> Expert:
    """Carries out the true subtasks of the episode."""
    return OracleSolver(environment.simulation)


def script(environment: Any) -> Expert:
    """Carries out the subtasks of seed 0's episode, once each, whatever the seed."""
    simulation = environment.simulation
    task = simulation.task
    return ScriptSolver(simulation, task.variants[draw_layout(task, 0).variant].subtasks)


def skills(environment: Any, config: AgentConfig) -> Policy:
    """Scripted skills carry out the planner's subtask; with `slip_probability` things slip out of the gripper."""
    if config.slip_probability:
        return SlippingPolicy(environment.simulation, config.slip_probability)
    return ScriptedPolicy(environment.simulation)


def memoryless(environment: Any, config: AgentConfig) -> Policy:
    """The memoryless expert, which decides every step afresh and which learned actors imitate."""
    return MemorylessPolicy(environment.simulation)


def true_subtask(environment: Any) -> Callable[[], str]:
    simulation = environment.simulation
    return lambda: due_label(simulation)

"""Builds agents by their names: planner, memory and low-level policy in the dual system, or an expert by itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from memory_bank import MemoryConfig, make_memory
from planner.checkpoint import changed_spec
from planner.endpoint import EndpointPlanner
from predimem.agent.baselines import (
    EpisodicAgent,
    ExpertAgent,
    InstructionPlanner,
    OracleSubtaskAgent,
    OracleSubtasks,
    PlannedAgent,
    RandomAgent,
)
from predimem.agent.clock import SimulatedClock
from predimem.agent.config import INSTRUCTION, NO_MEMORY, ORACLE, AgentConfig, is_remote
from predimem.agent.dual_system import DualSystemAgent
from predimem.agent.own_planner import make_own_planner, memory_of
from predimem.agent.worker import PlannerWorker
from predimem.core.config import from_dict
from predimem.core.interfaces import Agent, Planner, Policy
from predimem.core.weight_files import weights_folder
from predimem.envs.benchmark import load_benchmark, load_expert
from predimem.evaluation.run.config import PlayConfig
from predimem.evaluation.run.names import RANDOM, check_agents


class AgentFactory:
    """Builds agents in one process; each model is loaded once."""

    def __init__(self, config: PlayConfig):
        self._config = config
        self._benchmark = load_benchmark(config.benchmark)
        self._models: dict[str, Any] = {}

    def is_privileged(self, name: str) -> bool:
        """Whether an expert with the true state acts, which may command the robot in another way."""
        config = self._config.agent_configs.get(name)
        return name in self._benchmark.experts.agents if config is None else config.is_scripted

    def make(self, name: str, environment: Any) -> Agent:
        """Build the agent `name` for an environment; a learned system needs no more of it than a `BareRobot` has.

        Raises ValueError for an unknown agent, and WeightsError if its weights are missing.
        """
        check_agents([name], self._config.benchmark, self._config.agent_configs)
        if name in self._config.agent_configs:
            return self._planned(self._config.agent_configs[name], environment)
        if name == RANDOM:
            return RandomAgent(environment.action_dim)
        if name in self._benchmark.agents:
            return load_expert(self._benchmark.agents[name])(name, environment, self._config.weights)
        return ExpertAgent(load_expert(self._benchmark.experts.agents[name])(environment))

    def load(self, name: str) -> None:
        """Load the models of the agent `name`, and check all of it that needs no environment.

        Raises ValueError for an unknown agent or for an option of it, and SetupError if a model cannot be loaded.
        """
        check_agents([name], self._config.benchmark, self._config.agent_configs)
        config = self._config.agent_configs.get(name)
        if config is None:
            return
        if config.is_scripted:
            self._check_scripted(config)
        else:
            self._policy(config)
        planner, _ = self._planner_and_memory(config)
        if isinstance(planner, OracleSubtasks):
            self._check_true_subtask()

    def set_threads(self) -> None:
        import torch

        torch.set_num_threads(self._config.torch_threads)

    def _planned(self, config: AgentConfig, environment: Any) -> Agent:
        time = self._config.time
        if config.s2_latency_steps is not None:
            time = replace(time, s2_latency_steps=config.s2_latency_steps)
        if config.is_scripted:
            time = replace(time, s1_latency_steps=0)  # experts answer for the very step that they are asked at
        policy = self._scripted(config, environment) if config.is_scripted else self._policy(config)
        planner, memory = self._planner_and_memory(config)
        own = {name: getattr(config, name) for name in ("confirm_plans", "execute_steps")}
        options = replace(self._config.agent, **{name: value for name, value in own.items() if value is not None})
        clock = time.make_clock(environment.control_hz)
        if isinstance(planner, InstructionPlanner) and isinstance(clock, SimulatedClock):
            clock = SimulatedClock(clock.s1_latency_steps, 0)  # there is no S2 to wait for
        worker = PlannerWorker(planner, clock)
        agent: PlannedAgent = DualSystemAgent(
            make_memory(memory), worker, policy, clock, environment.hold_action, options
        )
        if isinstance(planner, OracleSubtasks):
            agent = OracleSubtaskAgent(agent, planner, self._true_subtask(environment))
        reset = getattr(policy, "reset", None)
        return agent if reset is None else EpisodicAgent(agent, reset)

    def _planner_and_memory(self, config: AgentConfig) -> tuple[Planner, MemoryConfig]:
        if config.planner == ORACLE:
            return OracleSubtasks(), NO_MEMORY
        if config.planner == INSTRUCTION:
            return InstructionPlanner(), NO_MEMORY
        if config.has_own_planner:
            return self._own_planner(config), memory_of(config.planner, config.memory)
        planner = self._planner(config.planner)
        spec = changed_spec(planner.spec, config.memory, config.prompt)
        return planner if spec.prompt == planner.spec.prompt else planner.with_spec(spec), spec.memory

    def _scripted(self, config: AgentConfig, environment: Any) -> Policy:
        return load_expert(self._check_scripted(config))(environment, config)

    def _check_scripted(self, config: AgentConfig) -> str:
        policies = self._benchmark.experts.policies
        if config.actor not in policies:
            known = ", ".join(policies) or "none"
            raise ValueError(f"{self._benchmark.name} has no scripted policy {config.actor!r}; it has: {known}")
        return policies[config.actor]

    def _true_subtask(self, environment: Any) -> Callable[[], str]:
        return load_expert(self._check_true_subtask())(environment)

    def _check_true_subtask(self) -> str:
        if self._benchmark.experts.subtask is None:
            raise ValueError(f"{self._benchmark.name} does not tell the true subtask, which planner `oracle` says")
        return self._benchmark.experts.subtask

    def _own_planner(self, config: AgentConfig) -> Planner:
        key = f"{config.planner} {config.planner_options}"
        if key not in self._models:
            self._models[key] = make_own_planner(config.planner, config.planner_options)
        return self._models[key]

    def _planner(self, name: str) -> Any:
        if name not in self._models:
            folder, place = weights_folder(self._config.weights, name), self._config.planner_on
            if (endpoint := self._config.planner_endpoints.get(name)) is not None:
                self._models[name] = EndpointPlanner(folder, endpoint)
                return self._models[name]
            from planner.decoding import load_planner

            self.set_threads()
            self._models[name] = load_planner(folder, place.device, self._config.planner_caches, dtype=place.dtype)
        return self._models[name]

    def _policy(self, config: AgentConfig) -> Policy:
        name = config.actor
        if is_remote(name):
            from actor.remote import RemoteConfig, RemotePolicy

            key = f"{name} {config.actor_options}"
            if key not in self._models:
                options = from_dict(RemoteConfig, config.actor_options, "actor_options")
                self._models[key] = RemotePolicy(name, options)
            return self._models[key]
        if name not in self._models:
            from actor.policy import load_policy

            self.set_threads()
            folder, place = weights_folder(self._config.weights, name), self._config.actor_on
            self._models[name] = load_policy(folder, device=place.device, dtype=place.dtype)
        return self._models[name]

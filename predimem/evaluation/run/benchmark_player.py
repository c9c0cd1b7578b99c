"""Plays the episodes of a benchmark in one process: environments and agents are built once and kept."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from datagen.keyframes import extract_keyframes
from predimem.agent.own_planner import weights_of
from predimem.agent.runtime import run_episode
from predimem.core.interfaces import Agent, Subscriber
from predimem.core.own_code import code_hash
from predimem.core.types import EpisodeResult
from predimem.core.weight_files import weights_folder, weights_hash
from predimem.envs.benchmark import EnvironmentRequest, GradedByItself, load_benchmark
from predimem.evaluation.run.agents import AgentFactory
from predimem.evaluation.run.config import PlayConfig
from predimem.evaluation.run.memories import memory_code
from predimem.evaluation.run.task_records import task_record

Key = tuple[str, EnvironmentRequest]


class BenchmarkPlayer:
    """A `predimem.evaluation.run.player.Player`. Picklable factories are made with `functools.partial`."""

    def __init__(self, config: PlayConfig):
        self._config = config
        self._benchmark, self._options = load_benchmark(config.benchmark), config.options
        self._factory = AgentFactory(config)
        self._environments: dict[Key, Any] = {}
        self._agents: dict[tuple[str, Key], Agent] = {}

    def load(self, agents: Sequence[str]) -> None:
        for agent in agents:
            self._factory.load(agent)

    def play(self, task: str, agent: str, seed: int, subscribers: Sequence[Subscriber] = ()) -> EpisodeResult:
        """Play one episode.

        Raises ValueError for an unknown task or agent, WeightsError if weights are missing, VulkanError if a
        subscriber films (it has `every_steps`) and nothing can render, and OSError if the disk is full.
        """
        every = self._config.images_every(agent)
        if every is None:
            films = [s.every_steps for s in subscribers if hasattr(s, "every_steps")]  # type: ignore[attr-defined]
            every = math.gcd(*films) if films else None
        # An agent that looks sees the same images whether it is filmed or not: else it would act otherwise.
        key = self._environment_key(task, EnvironmentRequest(self._factory.is_privileged(agent), every is not None))
        environment = self._environments[key]
        if hasattr(environment, "camera_every"):
            environment.camera_every = every
        if (agent, key) not in self._agents:
            self._agents[agent, key] = self._factory.make(agent, environment)
        return run_episode(environment, self._agents[agent, key], task, agent, seed, subscribers)

    def true_keyframes(self, states: np.ndarray, hz: float) -> tuple[int, ...] | None:
        """The keyframes by Eq. 1-3 of RoboMemArena (arXiv:2605.10921) on a trajectory, as demonstrations have them."""
        trajectory = self._benchmark.gripper_trajectory(states) if len(states) else None
        return None if trajectory is None else extract_keyframes(*trajectory, hz)

    def provenance(self) -> dict[str, Any]:
        """What the figures of this player depend on: settings, the benchmark's version, the hashes of weights, and
        the files of tasks that are not the benchmark's own."""
        play, root = self._config.as_data(), self._config.weights
        for name in ("planner_caches", "planner_on", "actor_on", "planner_endpoints", "shared_planner"):
            del play[name]
        play |= self._config.compute
        agents = play.pop("agent_configs")
        for name, config in self._config.agent_configs.items():
            del agents[name]["note"], agents[name]["against"]
            agents[name]["weights"] = {model: weights_hash(weights_folder(root, model)) for model in config.weights}
            if config.has_own_planner:
                agents[name]["weights"][config.planner] = code_hash(config.planner)
                used = weights_of(config.planner, config.planner_options)
                agents[name]["weights"] |= {folder.name: weights_hash(folder) for folder in used}
            agents[name] |= memory_code(config, root)
        files = {name: task_record(path) for name, path in play.pop("task_files").items()}
        return {
            "play": play,
            "benchmark_version": self._benchmark.version(),
            **({"agent_configs": agents} if agents else {}),
            **({"task_files": files} if files else {}),
        }

    def run_harness(
        self, task: str, agent: str, episodes: int | None, on_episode: Callable[[int, bool], object]
    ) -> dict[str, Any]:
        """Let the benchmark's own code grade an agent without privileged state; return its result."""
        graded = self._benchmark
        if not isinstance(graded, GradedByItself):
            raise ValueError(f"{graded.name} has no evaluation code of its own: use `predimem eval`")
        config = self._config.agent_configs.get(agent)
        if self._factory.is_privileged(agent) or (config is not None and config.planner == "oracle"):
            raise ValueError(f"{agent!r} reads the simulator's state, which the harness keeps to itself")
        player: Any = self._factory.make(agent, graded.robot)
        try:
            return graded.run_harness(task, lambda: player, episodes, on_episode)
        finally:
            player.close()

    def close(self) -> None:
        for agent in self._agents.values():
            agent.close()  # type: ignore[attr-defined]
        for environment in self._environments.values():
            environment.close()
        self._agents, self._environments = {}, {}

    def _environment_key(self, task: str, request: EnvironmentRequest) -> Key:
        """The key of an environment that does what is requested; it is built if there is none."""
        request = request if self._benchmark.heeds_requests else EnvironmentRequest()
        for key in ((task, replace(request, images=True)), (task, request)):
            if key in self._environments:
                return key
        kept = self._benchmark.environments_kept
        if kept is not None and len(self._environments) >= kept:
            self.close()
        self._factory.set_threads()
        where = self._config.task_files.get(task, task)
        self._environments[task, request] = self._benchmark.make_environment(where, self._options, request)
        return task, request

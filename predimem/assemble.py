"""Where concrete parts meet: which planner, policy, memory and suite an agent's name stands for.

Only this module and `cli` name concrete parts. The imports inside the functions keep torch and the
simulator out of processes that need neither.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from memory_bank import MemoryBank, MemoryConfig
from predimem.agent import AgentConfig, DualSystemAgent, HoldAction
from predimem.clock import SimulatedClock, TimeConfig
from predimem.config import to_dict
from predimem.interfaces import Agent, Planner, Policy, Subscriber
from predimem.oracles import ExpertAgent, InstructionPlanner, OracleSubtaskAgent, OracleSubtasks, RandomAgent
from predimem.runtime import run_episode
from predimem.types import EpisodeResult, StepResult
from predimem.weight_files import EMBEDDED, weights_folder, weights_hash
from predimem.worker import PlannerWorker

LEARNED_PLANNERS = {
    "predimem": "planner",
    "no-keyframes": "planner-no-keyframes",
    "no-head": "planner-no-head",
}
AGENTS = (*LEARNED_PLANNERS, "reactive", "oracle-subtask", "oracle", "random")

OnEpisode = Callable[[int, bool], object]


@dataclass(frozen=True)
class PlayConfig:
    """How episodes are played. weights: a folder with `planner/`, `actor/`, ...; null: the shipped ones.
    rendering: `stock` meshes for figures to quote, `fast` (decimated) ones for studies."""

    suite: Literal["mikasa"] = "mikasa"
    rendering: Literal["stock", "fast"] = "stock"
    time: TimeConfig = field(default_factory=TimeConfig)
    agent: AgentConfig = field(default_factory=AgentConfig)
    weights: str | None = None
    torch_threads: int = 1


class Player:
    """Plays episodes in one process: every environment and every model is built once."""

    def __init__(self, config: PlayConfig):
        self._config = config
        self._environments: dict[str, Any] = {}
        self._models: dict[str, Any] = {}
        self._agents: dict[tuple[str, str], Agent] = {}

    def play(
        self, task: str, agent: str, seed: int, subscribers: Sequence[Subscriber] = ()
    ) -> EpisodeResult:
        """One episode. Raises ValueError for an unknown task or agent, WeightsError without weights."""
        environment = self._environment(task)
        player = self._agent(agent, task)
        return run_episode(environment, player, task, agent, seed, subscribers)

    def provenance(self) -> dict[str, Any]:
        """What the figures of this player depend on: config, suite version and weights' hashes."""
        from predimem.evaluation.suites import mikasa

        return {
            "play": to_dict(self._config),
            "suite_version": mikasa.suite_version(),
            "weights": weights_hashes(self._config.weights),
        }

    def run_harness(
        self, task: str, agent: str, episodes: int | None, on_episode: OnEpisode
    ) -> dict[str, Any]:
        """Let the suite's own code grade an agent without privileged state; the suite's result."""
        if agent in ("oracle", "oracle-subtask"):
            raise ValueError(f"{agent!r} reads the simulator's state, which the harness keeps to itself")
        from predimem.evaluation.suites import mikasa
        from predimem.evaluation.suites.mikasa_harness import run_suite_harness

        player: Any = self._make_agent(agent, BareRobot(mikasa.hold_action, mikasa.ACTION_DIM, mikasa.CONTROL_HZ))
        try:
            return run_suite_harness(task, lambda: player, episodes, on_episode=on_episode)
        finally:
            player.close()

    def close(self) -> None:
        for agent in self._agents.values():
            agent.close()  # type: ignore[attr-defined]
        for environment in self._environments.values():
            environment.close()

    def _environment(self, task: str) -> Any:
        if task not in self._environments:
            from predimem.evaluation.suites.mikasa import MikasaEnvironment

            self._environments[task] = StopAtSuccess(MikasaEnvironment(task, self._config.rendering))
        return self._environments[task]

    def _agent(self, name: str, task: str) -> Agent:
        if (name, task) not in self._agents:
            self._agents[name, task] = self._make_agent(name, self._environment(task))
        return self._agents[name, task]

    def _make_agent(self, name: str, environment: Any) -> Agent:
        check_agents([name])
        if name == "random":
            return RandomAgent(environment.action_dim)
        if name == "oracle":
            from datagen.mikasa_expert import expert_action

            return ExpertAgent(lambda: expert_action(environment.privileged()))
        hold, hz = environment.hold_action, environment.control_hz
        if name == "oracle-subtask":
            from datagen.mikasa_expert import expert_subtask

            subtasks = OracleSubtasks()
            inner = self._dual_system(subtasks, MemoryConfig(keyframes=False), hold, hz)
            return OracleSubtaskAgent(inner, subtasks, lambda: expert_subtask(environment.privileged()))
        if name == "reactive":
            return self._dual_system(InstructionPlanner(), MemoryConfig(keyframes=False), hold, hz)
        planner = self._planner(LEARNED_PLANNERS[name])
        return self._dual_system(planner, planner.spec.memory, hold, hz)

    def _dual_system(
        self, planner: Planner, memory: MemoryConfig, hold: HoldAction, control_hz: float
    ) -> DualSystemAgent:
        clock = self._config.time.make_clock(control_hz)
        if isinstance(planner, InstructionPlanner) and isinstance(clock, SimulatedClock):
            clock = SimulatedClock(clock.s1_latency_steps, 0)  # there is no S2 to wait for
        worker = PlannerWorker(planner, clock)
        bank = MemoryBank(memory)
        return DualSystemAgent(bank, worker, self._policy(), clock, hold, self._config.agent)

    def _planner(self, name: str) -> Any:
        if name not in self._models:
            from planner.decoding import load_planner

            self._set_threads()
            self._models[name] = load_planner(weights_folder(self._config.weights, name))
        return self._models[name]

    def _policy(self) -> Policy:
        if "actor" not in self._models:
            from actor.policy import load_policy

            self._set_threads()
            self._models["actor"] = load_policy(weights_folder(self._config.weights, "actor"))
        return self._models["actor"]

    def _set_threads(self) -> None:
        import torch

        torch.set_num_threads(self._config.torch_threads)


@dataclass(frozen=True)
class BareRobot:
    """What a learned agent needs to know of an environment that somebody else steps."""

    hold_action: HoldAction
    action_dim: int
    control_hz: float


class StopAtSuccess:
    """Ends an episode at its first success, for suites in which a success cannot be lost again."""

    def __init__(self, environment: Any):
        self._environment = environment

    def step(self, action: Any) -> StepResult:
        result = self._environment.step(action)
        return replace(result, terminated=result.terminated or result.success)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._environment, name)


def make_player(config: PlayConfig) -> Player:
    """A picklable factory (with functools.partial) for evaluation's worker processes."""
    return Player(config)


def check_agents(names: Sequence[str]) -> None:
    unknown = [name for name in names if name not in AGENTS]
    if unknown:
        raise ValueError(f"unknown agent {unknown[0]!r}; there are: {', '.join(AGENTS)}")


def check_weights(agents: Sequence[str], root: str | None) -> None:
    """Raises WeightsError unless every model that these agents are made of is there."""
    for agent in agents:
        if agent in LEARNED_PLANNERS:
            weights_folder(root, LEARNED_PLANNERS[agent])
        if agent not in ("oracle", "random"):
            weights_folder(root, "actor")


def check_tasks(tasks: Sequence[str]) -> None:
    """Raises ValueError for a task that the suite does not have, naming those that it has."""
    from predimem.evaluation.suites import mikasa

    for task in tasks:
        mikasa.check_task(task)


def weights_hashes(root: str | None) -> dict[str, str]:
    """Model name -> hash, for every model folder that is there."""
    folder = Path(root) if root else EMBEDDED
    models = [path for path in sorted(folder.glob("*")) if path.is_dir()]
    return {path.name: weights_hash(path) for path in models}


def make_training_environment(task: str) -> Any:
    """The environment that demonstrations are collected in: decimated meshes."""
    from predimem.evaluation.suites.mikasa import MikasaEnvironment

    return MikasaEnvironment(task, "fast")

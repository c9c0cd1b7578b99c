"""Playing episodes: who an agent's name stands for, in which world."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from memory_bank import MemoryBank, MemoryConfig
from predimem.agent.baselines import (
    EpisodicAgent,
    ExpertAgent,
    InstructionPlanner,
    OracleSubtaskAgent,
    OracleSubtasks,
    PlannedAgent,
    RandomAgent,
    SolverAgent,
)
from predimem.agent.clock import SimulatedClock, TimeConfig
from predimem.agent.config import EXPERT, INSTRUCTION, NO_MEMORY, SCRIPTED, TRUTH, AgentConfig
from predimem.agent.dual_system import DualSystemAgent, HoldAction
from predimem.agent.runtime import run_episode
from predimem.agent.worker import PlannerWorker
from predimem.core.config import from_dict, to_dict
from predimem.core.interfaces import Agent, Planner, Policy, Subscriber
from predimem.core.types import EpisodeResult
from predimem.core.weight_files import weights_folder, weights_hash
from predimem.evaluation.run.config import PlayConfig
from predimem.evaluation.run.environments import BareRobot, StopAtSuccess, arena_control_mode, make_arena_environment
from predimem.evaluation.run.names import LEARNED_PLANNERS, check_agents, weights_hashes

OnEpisode = Callable[[int, bool], object]


class Player:
    """Plays episodes in one process. Models are built once and kept, and so are mikasa's environments;
    of the arena's, the last one is."""

    def __init__(self, config: PlayConfig):
        self._config = config
        self._environments: dict[str, Any] = {}
        self._models: dict[str, Any] = {}
        self._agents: dict[tuple[str, str], Agent] = {}
        self._arena_made: tuple[str, str, bool] | None = None

    def play(self, task: str, agent: str, seed: int, subscribers: Sequence[Subscriber] = ()) -> EpisodeResult:
        """One episode. Raises ValueError for an unknown task or agent, WeightsError without weights, and
        VulkanError where a subscriber films the arena (it has `every_steps`) and nothing can render it."""
        if self._config.suite == "arena":
            film_steps = [s.every_steps for s in subscribers if hasattr(s, "every_steps")]  # type: ignore[attr-defined]
            environment = self._arena(task, agent, film_steps)
        else:
            environment = self._environment(task)
        player = self._agent(agent, task)
        return run_episode(environment, player, task, agent, seed, subscribers)

    def true_keyframes(self, states: np.ndarray, hz: float) -> tuple[int, ...] | None:
        """The keyframes of Eq. 1-3 on a trajectory of the arena, as its demonstrations have them."""
        if self._config.suite != "arena" or not len(states):
            return None
        from datagen.export.arena_state import OPENING, POSITION
        from datagen.keyframes import extract_keyframes

        return extract_keyframes(states[:, POSITION], states[:, OPENING], hz)

    def provenance(self) -> dict[str, Any]:
        """What the figures of this player depend on: config, suite version and weights' hashes."""
        from predimem.envs.arena import suite as arena
        from predimem.envs.mikasa import suite as mikasa

        played = arena if self._config.suite == "arena" else mikasa
        play = to_dict(self._config)
        root, rows = self._config.weights, play.pop("rows")
        for name, row in self._config.rows.items():
            del rows[name]["note"], rows[name]["against"]
            rows[name]["weights"] = {model: weights_hash(weights_folder(root, model)) for model in row.weights}
        files = {name: sha256(Path(path).read_bytes()).hexdigest() for name, path in play.pop("task_files").items()}
        return {
            "play": play,
            "suite_version": played.suite_version(),
            "weights": {} if played is arena else weights_hashes(root),
            **({"rows": rows} if rows else {}),
            **({"task_files": files} if files else {}),
        }

    def run_harness(self, task: str, agent: str, episodes: int | None, on_episode: OnEpisode) -> dict[str, Any]:
        """Let the suite's own code grade an agent without privileged state; the suite's result."""
        if agent in ("oracle", "oracle-subtask"):
            raise ValueError(f"{agent!r} reads the simulator's state, which the harness keeps to itself")
        from predimem.envs.mikasa import suite as mikasa
        from predimem.envs.mikasa.harness import run_suite_harness

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
        self._agents, self._environments = {}, {}

    def _environment(self, task: str) -> Any:
        if task not in self._environments:
            from predimem.envs.mikasa.suite import MikasaEnvironment

            self._environments[task] = StopAtSuccess(MikasaEnvironment(task, self._config.rendering))
        return self._environments[task]

    def _arena(self, task: str, agent: str, film_steps: Sequence[int]) -> Any:
        """The task's environment with what the agent acts in, with a renderer if pictures are wanted."""
        row = self._config.rows.get(agent)
        camera_every = self._config.camera_every(row) if row else None
        # An agent that looks sees the same pictures whether it is filmed or not: else it would act otherwise.
        wanted = list(film_steps) if camera_every is None else [camera_every]
        made = (task, arena_control_mode(agent, row), bool(wanted))
        if self._arena_made not in (made, (*made[:2], True)):
            self.close()
            self._arena_made = None
            self._set_threads()
            key = self._config.task_files.get(task, task)
            self._environments[task] = make_arena_environment(
                key, made[1], self._config.image_px, made[2], self._config.inverse_kinematics
            )
            self._arena_made = made
        environment = self._environments[task]
        environment.camera_every = math.gcd(*wanted) if wanted else None
        return environment

    def _agent(self, name: str, task: str) -> Agent:
        if (name, task) not in self._agents:
            self._agents[name, task] = self._make_agent(name, self._environment(task))
        return self._agents[name, task]

    def _make_agent(self, name: str, environment: Any) -> Agent:
        check_agents([name], self._config.suite, self._config.rows)
        if name in self._config.rows:
            return self._make_row(self._config.rows[name], environment)
        if name == "random":
            return RandomAgent(environment.action_dim)
        if self._config.suite == "arena":
            return make_solver_agent(name, environment.simulation)
        if name == "oracle":
            from predimem.envs.mikasa.expert import expert_action

            return ExpertAgent(lambda: expert_action(environment.privileged()))
        hold, hz = environment.hold_action, environment.control_hz
        if name == "oracle-subtask":
            from predimem.envs.mikasa.expert import expert_subtask

            subtasks = OracleSubtasks()
            inner = self._dual_system(subtasks, NO_MEMORY, self._policy(), hold, hz)
            return OracleSubtaskAgent(inner, subtasks, lambda: expert_subtask(environment.privileged()))
        if name == "reactive":
            return self._dual_system(InstructionPlanner(), NO_MEMORY, self._policy(), hold, hz)
        planner = self._planner(LEARNED_PLANNERS[name])
        return self._dual_system(planner, planner.spec.memory, self._policy(), hold, hz)

    def _make_row(self, row: AgentConfig, environment: Any) -> Agent:
        """A learned system of the arena; parts that know the true state take it from `environment.simulation`."""
        from datagen.experts.scripted.subtask_names import due_label

        simulation, hold, hz = environment.simulation, environment.hold_action, environment.control_hz
        policy = self._scripted(simulation, row) if row.actor in SCRIPTED else self._policy(row.actor)
        time = self._config.time
        if row.s2_latency_steps is not None:
            time = replace(time, s2_latency_steps=row.s2_latency_steps)
        if row.actor in SCRIPTED:
            time = replace(time, s1_latency_steps=0)  # they answer for the very step that they are asked at
        planner: Planner
        if row.planner == TRUTH:
            planner, memory = OracleSubtasks(), NO_MEMORY
        elif row.planner == INSTRUCTION:
            planner, memory = InstructionPlanner(), NO_MEMORY
        else:
            planner = learned = self._planner(row.planner)
            memory = from_dict(MemoryConfig, to_dict(learned.spec.memory) | row.memory, "memory")
        agent: PlannedAgent = self._dual_system(planner, memory, policy, hold, hz, time)
        if isinstance(planner, OracleSubtasks):
            agent = OracleSubtaskAgent(agent, planner, lambda: due_label(simulation))
        return EpisodicAgent(agent, policy.reset) if row.actor in SCRIPTED else agent  # type: ignore[attr-defined]

    def _scripted(self, simulation: Any, row: AgentConfig) -> Policy:
        if row.actor == EXPERT:
            from datagen.experts.memoryless.policy import ReactiveActor

            return ReactiveActor(simulation)
        if row.slip_probability:
            from datagen.dagger.injected_slips import SlippingActor

            return SlippingActor(simulation, row.slip_probability)
        from datagen.experts.scripted.policy import SkillActor

        return SkillActor(simulation)

    def _dual_system(
        self,
        planner: Planner,
        memory: MemoryConfig,
        policy: Policy,
        hold: HoldAction,
        control_hz: float,
        time: TimeConfig | None = None,
    ) -> DualSystemAgent:
        clock = (time or self._config.time).make_clock(control_hz)
        if isinstance(planner, InstructionPlanner) and isinstance(clock, SimulatedClock):
            clock = SimulatedClock(clock.s1_latency_steps, 0)  # there is no S2 to wait for
        worker = PlannerWorker(planner, clock)
        return DualSystemAgent(MemoryBank(memory), worker, policy, clock, hold, self._config.agent)

    def _planner(self, name: str) -> Any:
        if name not in self._models:
            from planner.decoding import load_planner

            self._set_threads()
            self._models[name] = load_planner(weights_folder(self._config.weights, name))
        return self._models[name]

    def _policy(self, name: str = "actor") -> Policy:
        if name not in self._models:
            from actor.policy import load_policy

            self._set_threads()
            self._models[name] = load_policy(weights_folder(self._config.weights, name))
        return self._models[name]

    def _set_threads(self) -> None:
        import torch

        torch.set_num_threads(self._config.torch_threads)


def make_player(config: PlayConfig) -> Player:
    """A picklable factory (with functools.partial) for evaluation's worker processes."""
    return Player(config)


def make_solver_agent(name: str, simulation: Any) -> Agent:
    """`oracle`: the true subtasks of the episode; `script`: always those of seed 0's episode, once each."""
    from datagen.experts.scripted.solver import OracleSolver, ScriptSolver

    if name == "oracle":
        return SolverAgent(OracleSolver(simulation))
    from predimem.envs.arena.layout import draw_layout

    task = simulation.task
    return SolverAgent(ScriptSolver(simulation, task.variants[draw_layout(task, 0).variant].subtasks))

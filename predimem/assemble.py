"""Where concrete parts meet: which planner, policy, memory and suite an agent's name stands for.

Only this module and `cli` name concrete parts. The imports inside the functions keep torch and the
simulator out of processes that need neither.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from memory_bank import MemoryBank, MemoryConfig
from predimem.agent import AgentConfig, DualSystemAgent, HoldAction
from predimem.clock import SimulatedClock, TimeConfig
from predimem.config import from_dict, to_dict
from predimem.evaluation.play import EXPERT, INSTRUCTION, SCRIPTED, SKILLS, TRUTH, PlayConfig, RowConfig, Suite
from predimem.interfaces import Agent, Planner, Policy, Subscriber
from predimem.oracles import (
    EpisodicAgent,
    ExpertAgent,
    InstructionPlanner,
    OracleSubtaskAgent,
    OracleSubtasks,
    PlannedAgent,
    RandomAgent,
    SolverAgent,
)
from predimem.runtime import run_episode
from predimem.serving.config import ModelsConfig
from predimem.serving.robot import RobotSpec, Served
from predimem.types import EpisodeResult, StepResult
from predimem.weight_files import EMBEDDED, weights_folder, weights_hash
from predimem.worker import PlannerWorker

LEARNED_PLANNERS = {
    "predimem": "planner",
    "no-keyframes": "planner-no-keyframes",
    "no-head": "planner-no-head",
}
AGENTS = (*LEARNED_PLANNERS, "reactive", "oracle-subtask", "oracle", "random")
ARENA_AGENTS = ("oracle", "script", "random")  # besides rows of a config; none of them looks at pictures
ARENA_CONFIG = "configs/eval/arena.yaml"
NO_MEMORY = MemoryConfig(recent_window=1, keyframes=False)

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
        from predimem.evaluation.suites import arena, mikasa

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
        self._agents, self._environments = {}, {}

    def _environment(self, task: str) -> Any:
        if task not in self._environments:
            from predimem.evaluation.suites.mikasa import MikasaEnvironment

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
            from datagen.mikasa_expert import expert_action

            return ExpertAgent(lambda: expert_action(environment.privileged()))
        hold, hz = environment.hold_action, environment.control_hz
        if name == "oracle-subtask":
            from datagen.mikasa_expert import expert_subtask

            subtasks = OracleSubtasks()
            inner = self._dual_system(subtasks, NO_MEMORY, self._policy(), hold, hz)
            return OracleSubtaskAgent(inner, subtasks, lambda: expert_subtask(environment.privileged()))
        if name == "reactive":
            return self._dual_system(InstructionPlanner(), NO_MEMORY, self._policy(), hold, hz)
        planner = self._planner(LEARNED_PLANNERS[name])
        return self._dual_system(planner, planner.spec.memory, self._policy(), hold, hz)

    def _make_row(self, row: RowConfig, environment: Any) -> Agent:
        """A learned system of the arena; parts that know the true state take it from `environment.simulation`."""
        from datagen.skills.named import due_label

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

    def _scripted(self, simulation: Any, row: RowConfig) -> Policy:
        if row.actor == EXPERT:
            from datagen.skills.reactive.actor import ReactiveActor

            return ReactiveActor(simulation)
        if row.slip_probability:
            from datagen.practice.slips import SlippingActor

            return SlippingActor(simulation, row.slip_probability)
        from datagen.skills.actor import SkillActor

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


def check_agents(names: Sequence[str], suite: Suite = "mikasa", rows: Collection[str] = ()) -> None:
    """Raises ValueError for an agent that does not play this suite, naming those that do. rows: a config's."""
    known = AGENTS if suite == "mikasa" else (*rows, *ARENA_AGENTS)
    for name in names:
        if name not in known:
            config = f"; learned systems are rows of a config: add --config {ARENA_CONFIG}"
            why = config if suite == "arena" and not rows and name in AGENTS else ""
            raise ValueError(f"unknown agent {name!r}; there are: {', '.join(known)}{why}")
    for name in rows:
        if name in ARENA_AGENTS:
            raise ValueError(f"rows: {name!r} is an agent already; choose another name")


def check_weights(agents: Sequence[str], play: PlayConfig) -> None:
    """Raises WeightsError unless every model that these agents are made of is there."""
    for agent in agents:
        if agent in play.rows:
            models = play.rows[agent].weights
        elif agent in ("oracle", "script", "random"):
            models = ()
        else:
            models = (LEARNED_PLANNERS[agent], "actor") if agent in LEARNED_PLANNERS else ("actor",)
        for model in models:
            weights_folder(play.weights, model)


def check_tasks(tasks: Sequence[str]) -> None:
    """Raises ValueError for a task that mikasa does not have, naming those that it has."""
    from predimem.evaluation.suites import mikasa

    for task in tasks:
        mikasa.check_task(task)


def task_names(suite: Suite, tasks: Sequence[str]) -> tuple[str, ...]:
    """The tasks' names in result files; the arena also takes ids ("4"), Gymnasium ids and task files.

    Raises ValueError for an unknown task, naming those that there are, and for a faulty file.
    """
    if suite == "mikasa":
        check_tasks(tasks)
        return tuple(tasks)
    from datagen.arena.tasks import task_of

    return tuple(task_of(task).name for task in tasks)


def task_horizons(suite: Suite, tasks: Sequence[str]) -> dict[str, int]:
    """Name -> the control steps that an episode takes at most; {} for mikasa, whose tasks are all short."""
    if suite == "mikasa":
        return {}
    from datagen.arena.tasks import task_of

    return {task_of(task).name: task_of(task).horizon for task in tasks}


def task_files(suite: Suite, tasks: Sequence[str]) -> dict[str, str]:
    """Name -> absolute path of those tasks of the arena that are given as a file (.py)."""
    if suite == "mikasa":
        return {}
    from datagen.arena.task_file import SUFFIX
    from datagen.arena.tasks import task_of

    return {task_of(task).name: str(Path(task).resolve()) for task in tasks if task.endswith(SUFFIX)}


def all_tasks(suite: Suite) -> tuple[str, ...]:
    """What is played where no task is named. Raises ValueError for mikasa: most of it needs downloads."""
    if suite == "mikasa":
        raise ValueError("mikasa: say which --tasks to play, comma-separated, such as RememberColor9-VLA-v0")
    from datagen.arena.tasks import TASKS

    return tuple(task.name for task in TASKS)


def task_categories(suite: Suite, files: Mapping[str, str] | None = None) -> Mapping[str, Sequence[str]] | None:
    """Category -> its tasks, those of `files` (see `task_files`) among them; None for a suite that has none."""
    if suite == "mikasa":
        return None
    from datagen.arena.task import CATEGORIES
    from datagen.arena.tasks import TASKS, task_of

    tasks = (*TASKS, *(task_of(path) for path in (files or {}).values()))
    return {category: [task.name for task in tasks if task.category == category] for category in CATEGORIES}


def arena_control_mode(agent: str, row: RowConfig | None) -> str:
    """Skills command joint angles, which is three times as fast to simulate; whatever was learned or is random
    gives the actions of the demonstrations."""
    scripted = agent in ("oracle", "script") if row is None else row.actor in SCRIPTED
    return "pd_joint_pos" if scripted else "pd_ee_delta_pose"


def make_arena_environment(
    task: str, control_mode: str, image_px: int, pictures: bool, inverse_kinematics: str
) -> Any:
    """One world of the arena, of a task's name or file. inverse_kinematics: of pd_ee_delta_pose, see `PlayConfig`."""
    import datagen.arena
    from predimem.evaluation.suites.arena import ArenaEnvironment

    driven = control_mode == "pd_ee_delta_pose" and inverse_kinematics == "predimem"
    env = datagen.arena.make(
        task,
        obs_mode="none",
        control_mode="pd_joint_pos" if driven else control_mode,
        image_px=image_px,
        sim_backend="cpu",
        render_backend="auto" if pictures else None,
    )
    if driven:
        from datagen.skills.delta_pose_env import DeltaPoseEnv

        env = DeltaPoseEnv(env)
    return ArenaEnvironment(env, camera_every=None)


def make_solver_agent(name: str, simulation: Any) -> Agent:
    """`oracle`: the true subtasks of the episode; `script`: always those of seed 0's episode, once each."""
    from datagen.skills.solver import OracleSolver, ScriptSolver

    if name == "oracle":
        return SolverAgent(OracleSolver(simulation))
    from datagen.arena.layout import draw_layout

    task = simulation.task
    return SolverAgent(ScriptSolver(simulation, task.variants[draw_layout(task, 0).variant].subtasks))


def weights_hashes(root: str | None) -> dict[str, str]:
    """Model name -> hash, for every folder of a model of mikasa that is there."""
    folder = Path(root) if root else EMBEDDED
    models = [path for path in sorted(folder.glob("*")) if path.is_dir() and not path.name.startswith("arena-")]
    return {path.name: weights_hash(path) for path in models}


def make_served(models: ModelsConfig) -> Served:
    """The models that a server serves. Raises WeightsError (or the model's own error) without usable weights."""
    import torch

    from actor.policy import load_policy
    from planner.checkpoint import read_spec

    torch.set_num_threads(models.torch_threads)
    folder = weights_folder(models.weights, models.actor)
    policy = load_policy(folder, models.seed, device=models.device)
    weights, make_planner, memory = {models.actor: weights_hash(folder)}, None, NO_MEMORY
    if models.planner != INSTRUCTION:
        folder = weights_folder(models.weights, models.planner)
        memory = read_spec(folder).memory
        weights[models.planner] = weights_hash(folder)
        make_planner = functools.partial(_load_planner, folder, models.device, models.torch_threads)
    actor = policy.config
    height, width = actor.camera_shape
    robot = RobotSpec(actor.cameras, (height, width), actor.state_dim, actor.action_dim)
    return Served(robot, policy, make_planner, memory, weights)


def _load_planner(folder: Path, device: str, threads: int) -> Planner:
    import torch

    from planner.decoding import load_planner

    torch.set_num_threads(threads)
    return load_planner(folder, device)


def make_training_environment(task: str) -> Any:
    """The environment that demonstrations are collected in: decimated meshes."""
    from predimem.evaluation.suites.mikasa import MikasaEnvironment

    return MikasaEnvironment(task, "fast")


@dataclass(frozen=True)
class PracticeRuntime:
    """The runtime of an evaluation in which data of practice are made (`datagen.practice.worker.Runtime`).

    driver: `truth`, or a planner: the folder of its weights, or the name of one that is shipped. hand: `skills`,
    `expert`, or likewise an actor. Raises WeightsError where there are none.
    """

    driver: str
    hand: str = SKILLS

    def __post_init__(self) -> None:
        for name, others in ((self.driver, (TRUTH,)), (self.hand, SCRIPTED)):
            if name not in others:
                _folder(name)

    def planner(self) -> Any:
        if self.driver == TRUTH:
            return None
        return _loaded_planner(_folder(self.driver))

    def policy(self) -> Any:
        if self.hand in SCRIPTED:
            return None
        from actor.policy import load_policy

        return load_policy(_folder(self.hand))

    def agent(self, voice: Planner, policy: Policy, hold: np.ndarray, config: Any) -> PlannedAgent:
        """config: `plan_every_steps` and `s2_latency_steps` of it. The skills answer for the very step."""
        learned = self.planner()
        clock = SimulatedClock(0, config.s2_latency_steps)
        bank = MemoryBank(learned.spec.memory if learned else NO_MEMORY)
        settings = AgentConfig(plan_every_steps=config.plan_every_steps)
        still = lambda last: hold if last is None else last  # noqa: E731
        return DualSystemAgent(bank, PlannerWorker(voice, clock), policy, clock, still, settings)


def _folder(name: str) -> Path:
    return Path(name) if Path(name).is_dir() else weights_folder(None, name)


@cache
def _loaded_planner(folder: Path) -> Any:
    import torch

    from planner.decoding import load_planner

    torch.set_num_threads(1)
    return load_planner(folder)

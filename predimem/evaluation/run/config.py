"""Says how episodes are played: in which benchmark, with which agents, weights and latencies."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from planner.caches import CacheConfig
from planner.endpoint import EndpointConfig
from predimem.agent.clock import TimeConfig
from predimem.agent.config import AgentConfig
from predimem.agent.dual_system import DualSystemConfig
from predimem.core.config import ConfigError, from_dict, merged, read_yaml, tasks_as_text, to_dict
from predimem.core.own_code import place_beside
from predimem.core.placement import Placement
from predimem.core.seeds import EVALUATION_SEEDS_FROM
from predimem.envs.benchmark import EnvironmentOptions, benchmark_key, load_benchmark
from predimem.evaluation.analysis.studies import StudyConfig
from predimem.evaluation.run.migrations import modern_results, modern_settings

DEFAULT_BENCHMARK = "mikasa"
HASHES = ("weights", "memory_code")  # what results say of an agent besides its settings
HOW_IT_IS_PLAYED = ("play", "agent_configs")  # what an evaluation without a file takes from its benchmark's


@dataclass(frozen=True)
class PlayConfig:
    """How one process plays episodes.

    benchmark: its name, or the file that defines it
    environment: the options of its environments, see the benchmark's `options`
    actor_camera_every: control steps from one image to the next where a learned actor acts, in benchmarks whose
        environments can leave images out
    time, agent: the latencies, and how often S1 and S2 are asked
    weights: a folder with `planner/`, `actor/`, ...; null: the shipped weights
    torch_threads: how many threads PyTorch uses in each process
    planner_caches: how much a planner remembers between its answers, to save time (`planner.caches`)
    planner_on, actor_on: where the models run, and with how many bits
    planner_endpoints: planner -> an OpenAI-compatible server that serves it in place of this process
    shared_planner: all workers share one process for each planner, in place of a copy in each
    agent_configs: name -> agent config
    task_files: name -> file, for the tasks that are not the benchmark's own
    """

    benchmark: str = DEFAULT_BENCHMARK
    environment: dict[str, Any] = field(default_factory=dict)
    actor_camera_every: int = 2
    time: TimeConfig = field(default_factory=TimeConfig)
    agent: DualSystemConfig = field(default_factory=DualSystemConfig)
    weights: str | None = None
    torch_threads: int = 1
    planner_caches: CacheConfig = field(default_factory=CacheConfig)
    planner_on: Placement = field(default_factory=Placement)
    actor_on: Placement = field(default_factory=Placement)
    planner_endpoints: dict[str, EndpointConfig] = field(default_factory=dict)
    shared_planner: bool = False
    agent_configs: dict[str, AgentConfig] = field(default_factory=dict)
    task_files: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if kept := [name for name, endpoint in self.planner_endpoints.items() if endpoint.constrained]:
            raise ValueError(
                f"planner_endpoints: {kept[0]}: constrained answers are for serving; an evaluation has to show a "
                "planner that has lost its format"
            )

    @property
    def options(self) -> EnvironmentOptions:
        """The benchmark's options. Raises ConfigError for one that it does not know."""
        return from_dict(load_benchmark(self.benchmark).options, self.environment, "play: environment")

    def images_every(self, agent: str) -> int | None:
        """Control steps from one image to the next where `agent` acts; None where it looks at none."""
        config = self.agent_configs.get(agent)
        return config.images_every(self.agent.plan_every_steps, self.actor_camera_every) if config else None

    @property
    def compute(self) -> dict[str, Any]:
        """What of where the models run may change an answer, as settings; empty for models of this CPU in float32."""
        placements = {name: getattr(self, name) for name in ("planner_on", "actor_on")}
        said: dict[str, Any] = {name: to_dict(place) for name, place in placements.items() if place != Placement()}
        if self.planner_caches.half_features:
            said["planner_caches"] = {"half_features": True}
        if self.planner_endpoints and not self.shared_planner:
            asked = ("url", "model", "constrained", "extra_body")
            every = {name: to_dict(endpoint) for name, endpoint in self.planner_endpoints.items()}
            said["planner_endpoints"] = {name: {key: each[key] for key in asked} for name, each in every.items()}
        return said

    def as_data(self) -> dict[str, Any]:
        """As JSON data, with the defaults of the benchmark's options."""
        return to_dict(self) | {"environment": to_dict(self.options)}


@dataclass(frozen=True)
class EvaluationFile:
    """`predimem eval --config`: what is played, and how.

    tasks: the tasks to play; empty: all of the benchmark
    conditions: the benchmark's conditions that each task is played in, such as `camera`; empty: the tasks as they are
    difficulty: the benchmark's difficulty that tasks are chosen from, such as `long`; null: any
    agents: names of `agent_configs`, or of the benchmark's experts (`oracle`, ...); the first one is compared with the
        others; empty: all agents whose weights are there, in their order
    episodes, seed_start: how many episodes of each task and agent, and the seed of the first one
    out: the folder for everything that is written
    workers: how many processes play side by side
    videos: how many episodes of each task and agent are filmed; null: 2, in benchmarks with long episodes none
    clips: how many failed episodes of each agent and cause are played again to film the seconds around the failure
    play: how episodes are played
    agent_configs: name -> agent config
    studies: agents that are drawn against what they differ in
    """

    benchmark: str = DEFAULT_BENCHMARK
    tasks: tuple[str, ...] = ()
    conditions: tuple[str, ...] = ()
    difficulty: str | None = None
    agents: tuple[str, ...] = ()
    episodes: int = 100
    seed_start: int = EVALUATION_SEEDS_FROM
    out: str = "runs/eval"
    workers: int = 1
    videos: int | None = None
    clips: int = 0
    play: PlayConfig = field(default_factory=PlayConfig)
    agent_configs: dict[str, AgentConfig] = field(default_factory=dict)
    studies: dict[str, StudyConfig] = field(default_factory=dict)

    complete_data = staticmethod(tasks_as_text)

    def __post_init__(self) -> None:
        if self.conditions and self.difficulty is not None:
            raise ValueError(
                f"conditions and difficulty do not go together: got conditions {', '.join(self.conditions)} and "
                f"difficulty {self.difficulty!r}; leave one of them out"
            )
        known = self.agent_configs
        unknown = sorted({name for study in self.studies.values() for name in study.values} - set(known))
        if unknown:
            raise ValueError(f"studies: no agent config {unknown[0]!r}; there are: {', '.join(known) or 'none'}")
        if self.play.agent_configs or self.play.task_files:
            raise ValueError("play: agent_configs belong on the top level of the file, task files into tasks")


def evaluation_settings(path: str | Path | None, given: Mapping[str, Any]) -> EvaluationFile:
    """The settings of a file, with what is given in their place.

    Without a file (None) the benchmark's own file says which agents there are and how they are played, and nothing
    else; results go into a folder of its name. given: "episodes", "play.time.mode", ... -> value, where None stands
    for "not given". Raises ConfigError.
    """
    where = "options" if path is None else str(path)
    changes: dict[str, Any] = {}
    for name, value in given.items():
        if value is not None:
            *parents, last = name.split(".")
            place = changes
            for parent in parents:
                place = place.setdefault(parent, {})
            place[last] = value
    benchmark = changes.get("benchmark", DEFAULT_BENCHMARK)
    own = {} if path is not None else {"out": f"{EvaluationFile.out}/{Path(benchmark).stem}"}
    data = merged(_base(path, benchmark), own | changes)
    if "benchmark" in data:
        data["benchmark"] = benchmark_key(data["benchmark"])
    return from_dict(EvaluationFile, data, where)


def _base(path: str | Path | None, benchmark: str) -> dict[str, Any]:
    if path is not None:
        return _with_planners_beside(modern_settings(read_yaml(path), str(path)), path)
    own = load_benchmark(benchmark).config
    if own is None:
        return {}
    data = _with_planners_beside(modern_settings(read_yaml(own), own), own)
    return {name: data[name] for name in HOW_IT_IS_PLAYED if name in data}


def _with_planners_beside(data: dict[str, Any], path: str | Path) -> dict[str, Any]:
    """The settings of a file, where planners whose code lies beside it are named by their absolute places."""
    agents = data.get("agent_configs")
    if not isinstance(agents, dict):
        return data
    folder = Path(path).parent
    located = {
        name: agent | {"planner": place_beside(agent["planner"], folder)}
        if isinstance(agent, dict) and isinstance(agent.get("planner"), str)
        else agent
        for name, agent in agents.items()
    }
    return data | {"agent_configs": located}


def read_results(path: str | Path) -> dict[str, Any]:
    """A results.json or compact file, of this version's form whichever version wrote it. Raises ConfigError."""
    try:
        return modern_results(json.loads(Path(path).read_text()))
    except (OSError, KeyError, TypeError, ValueError, AttributeError) as error:
        raise ConfigError(f"{path} is no results.json of `predimem eval` ({error!r})") from error


def played_with(
    results: Mapping[str, Any], where: str, weights: str | None = None, task_files: Mapping[str, str] | None = None
) -> PlayConfig:
    """How the episodes of a results file (`read_results`) were played.

    weights: the folder of the weights, if it lies elsewhere by now.
    task_files: name -> file, for tasks that are not the benchmark's own (`task_records.write_task_files`).
    Raises ConfigError for results that do not say how they were played.
    """
    provenance = results["provenance"]
    agents = provenance.get("agent_configs", {})
    play = dict(provenance["play"])
    play["agent_configs"] = {n: {k: v for k, v in agent.items() if k not in HASHES} for n, agent in agents.items()}
    if weights is not None:
        play["weights"] = weights
    play["task_files"] = dict(task_files or {})
    return from_dict(PlayConfig, play, where)

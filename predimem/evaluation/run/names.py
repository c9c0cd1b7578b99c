"""Checks which agents there are in a benchmark, and whether their weights are there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from datagen.decompose.agreement import own_task
from predimem.agent.config import AgentConfig
from predimem.agent.own_planner import check_own_planner
from predimem.core.suggestions import did_you_mean
from predimem.core.weight_files import WeightsError, weights_folder
from predimem.envs.benchmark import load_benchmark
from predimem.evaluation.run.config import PlayConfig

RANDOM, ARENA = "random", "arena"


def check_agents(names: Sequence[str], benchmark: str, configs: Mapping[str, Any]) -> None:
    """Raises ValueError for an agent that does not play this benchmark, and names those that do."""
    played = load_benchmark(benchmark)
    own = (*played.experts.agents, *played.agents, RANDOM)
    for name in names:
        if name not in (*configs, *own):
            hint = "" if played.config is None else f"; the agents of {played.name} are in {played.config}"
            meant = did_you_mean(name, (*configs, *own))
            raise ValueError(f"unknown agent {name!r}; there are: {', '.join((*configs, *own))}{hint}{meant}")
    for name in configs:
        if name in own:
            raise ValueError(f"agent_configs: {name!r} is an agent already; choose another name")


def check_weights(agents: Sequence[str], play: PlayConfig) -> None:
    """Raises WeightsError unless every model that these agents are made of is there, and OwnCodeError for a planner of
    the user's own whose code is not."""
    for config in (play.agent_configs[agent] for agent in agents if agent in play.agent_configs):
        for model in config.weights:
            weights_folder(play.weights, model)
        if config.has_own_planner:
            check_own_planner(config.planner, config.planner_options)


def missing_weights(configs: Mapping[str, AgentConfig], root: str | None) -> dict[str, str]:
    """For each agent that lacks a model, what is said of the first one that is missing."""
    missing: dict[str, str] = {}
    for name, config in configs.items():
        try:
            for model in config.weights:
                weights_folder(root, model)
        except WeightsError as error:
            missing[name] = str(error)
    return missing


def task_files(benchmark: str, tasks: Sequence[str]) -> dict[str, str]:
    """Name -> absolute path, for those tasks that are given as a file.

    Raises ValueError for a task file of the arena whose instruction and subtasks disagree.
    """
    played = load_benchmark(benchmark)
    files = {task: str(Path(path)) for task in tasks if (path := played.task_file(task)) is not None}
    if played.name == ARENA:
        for task in files:
            own_task(task)
    return {played.task_name(task): path for task, path in files.items()}

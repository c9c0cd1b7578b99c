"""MIKASA-Base as a `predimem.envs.benchmark.Benchmark`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from predimem.core.interfaces import Environment
from predimem.envs.base import packages, tasks
from predimem.envs.base.game import GameEnvironment
from predimem.envs.benchmark import Benchmark, EnvironmentRequest, Experts

VERSION = "1"
AGENTS = ("bank", "bank-novelty", "no-keyframes", "frame-stack", "gru")


class BaseBenchmark(Benchmark):
    """Episodes cost milliseconds. Learned agents are made by `predimem train base`."""

    name = "base"
    experts = Experts(agents={"oracle": "predimem.envs.base.oracle:Oracle"})
    agents: Mapping[str, str] = dict.fromkeys(AGENTS, "actor.memory_head.agent:make_agent")

    def version(self) -> str:
        return ", ".join(filter(None, (f"base {VERSION}", packages.versions())))

    def all_tasks(self) -> tuple[str, ...]:
        return tasks.all_tasks()

    def listed_tasks(self) -> tuple[str, ...]:
        return tasks.listed_tasks()

    def describe(self, task: str) -> str:
        return tasks.describe(task)

    def task_name(self, task: str) -> str:
        return tasks.check_task(task)

    def make_environment(self, task: str, options: Any, request: EnvironmentRequest) -> Environment:
        return GameEnvironment(task, tasks.make_game(task), tasks.family_name(task))

    def horizon(self, task: str) -> int | None:
        found = tasks.family_of(task)
        return None if found is None else tasks.FAMILIES[found[0]].make(found[1]).horizon

    def categories(self, tasks_played: Sequence[str]) -> Mapping[str, Sequence[str]] | None:
        """By family: the same task with different delays, or levels of difficulty."""
        families: dict[str, list[str]] = {}
        for task in tasks_played:
            families.setdefault("Numpad" if task in tasks.NUMPADS else tasks.family_name(task), []).append(task)
        return families


BASE = BaseBenchmark()

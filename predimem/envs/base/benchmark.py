"""MIKASA-Base as a `predimem.envs.benchmark.Benchmark`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from predimem.core.interfaces import Environment
from predimem.envs.base import packages
from predimem.envs.base import tasks as catalogue
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
        return catalogue.all_tasks()

    def listed_tasks(self) -> tuple[str, ...]:
        return catalogue.listed_tasks()

    def describe(self, task: str) -> str:
        return catalogue.describe(task)

    def task_name(self, task: str) -> str:
        return catalogue.check_task(task)

    def make_environment(self, task: str, options: Any, request: EnvironmentRequest) -> Environment:
        return GameEnvironment(task, catalogue.make_game(task), catalogue.family_name(task))

    def horizon(self, task: str) -> int | None:
        found = catalogue.family_of(task)
        return None if found is None else catalogue.FAMILIES[found[0]].make(found[1]).horizon

    def categories(self, tasks: Sequence[str]) -> Mapping[str, Sequence[str]] | None:
        """By family: the same task with different delays, or levels of difficulty."""
        families: dict[str, list[str]] = {}
        for task in tasks:
            families.setdefault("Numpad" if task in catalogue.NUMPADS else catalogue.family_name(task), []).append(task)
        return families


BASE = BaseBenchmark()

"""MIKASA-Robo-VLA as a `predimem.envs.benchmark.Benchmark`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from predimem.core.interfaces import Agent, Environment
from predimem.envs.benchmark import (
    BareRobot,
    Benchmark,
    EnvironmentOptions,
    EnvironmentRequest,
    Experts,
    Published,
    PublishedMeans,
)
from predimem.envs.mikasa import published as figures
from predimem.envs.mikasa import suite
from predimem.envs.mikasa.families.registry import family_of
from predimem.envs.stop_at_success import StopAtSuccess

EXPERT = "predimem.envs.mikasa.expert"


@dataclass(frozen=True)
class MikasaOptions(EnvironmentOptions):
    """rendering: `stock` meshes for figures to quote, `fast` (decimated) ones for studies."""

    rendering: Literal["stock", "fast"] = "stock"


class MikasaBenchmark(Benchmark):
    """A task is one of the suite's ids, such as RememberColor9-VLA-v0. Episodes end at their first success, which
    cannot be lost again there."""

    name = "mikasa"
    config = "configs/eval/mikasa.yaml"
    heeds_requests = True
    options = MikasaOptions
    experts = Experts(
        agents={"oracle": f"{EXPERT}:expert"},
        policies={"expert": f"{EXPERT}:expert_policy"},
        subtask=f"{EXPERT}:true_subtask",
    )
    robot = BareRobot(suite.hold_action, suite.ACTION_DIM, suite.CONTROL_HZ)

    def version(self) -> str:
        return suite.benchmark_version()

    def all_tasks(self) -> tuple[str, ...]:
        raise ValueError(
            "mikasa: say which --tasks to play, such as RememberColor9-VLA-v0; `predimem tasks` lists them"
        )

    def listed_tasks(self) -> tuple[str, ...]:
        return suite.tasks()

    def describe(self, task: str) -> str:
        return suite.describe(task)

    def task_name(self, task: str) -> str:
        suite.check_task(task)
        return task

    def subtasks(self, task: str) -> Sequence[str] | None:
        family = family_of(task)
        return None if family is None else family.subtasks(task)

    def make_environment(self, task: str, options: MikasaOptions, request: EnvironmentRequest) -> Environment:
        return StopAtSuccess(suite.MikasaEnvironment(task, options.rendering, request.images))

    def published(self, task: str) -> tuple[Published, ...]:
        return figures.published(task)

    def published_note(self) -> str:
        return f"{figures.PAPER}. {figures.NOTE}"

    def published_means(self) -> PublishedMeans:
        return figures.MEANS

    def run_harness(
        self,
        task: str,
        make_agent: Callable[[], Agent],
        episodes: int | None,
        on_episode: Callable[[int, bool], object],
    ) -> dict[str, Any]:
        from predimem.envs.mikasa.harness import run_suite_harness

        return run_suite_harness(task, make_agent, episodes, on_episode=on_episode)


MIKASA = MikasaBenchmark()

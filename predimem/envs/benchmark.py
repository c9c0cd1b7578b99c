"""What evaluation, data generation and serving ask of a benchmark, and which benchmarks there are.

A new benchmark is one folder (or one file) with an object that implements `Benchmark`, and one line in `BENCHMARKS`.
Without that line it is named by its place: `--benchmark examples/remember_the_light.py`, or `package.module:NAME`.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol, runtime_checkable

import numpy as np

from predimem.core.interfaces import Agent, Environment
from predimem.core.own_code import SUFFIX, is_place, load_file, load_object
from predimem.core.suggestions import did_you_mean

BENCHMARKS = {
    "mikasa": "predimem.envs.mikasa.benchmark:MIKASA",
    "arena": "predimem.envs.arena.benchmark:ARENA",
    "robomme": "predimem.envs.robomme.benchmark:ROBOMME",
    "base": "predimem.envs.base.benchmark:BASE",
    "interference": "predimem.envs.interference.benchmark:INTERFERENCE",
}
FILE_OBJECT = "BENCHMARK"  # what a file that is named by its path defines


@dataclass(frozen=True)
class EnvironmentOptions:
    """How a benchmark's environments are made: `environment:` in a config. A benchmark adds fields of its own."""


@dataclass(frozen=True)
class EnvironmentRequest:
    """What an agent needs of the environment that it acts in.

    privileged: a scripted expert acts, so that the environment may take commands which are cheaper to simulate than
    the actions of the demonstrations.
    images: somebody looks at images.
    """

    privileged: bool = False
    images: bool = True


@dataclass(frozen=True)
class Experts:
    """What knows the simulator's true state, each as "module:function", imported when an episode needs it.

    agents: name -> function from an environment to a `predimem.core.interfaces.Expert` that plays by itself.
    policies: name -> function from (environment, agent config) to a low-level policy (`Policy`) that carries out
    subtasks; one with a `reset` is reset at each episode. subtask: function from an environment to a function that
    gives the true subtask of the present step, which the oracle planner says.
    """

    agents: Mapping[str, str] = field(default_factory=dict)
    policies: Mapping[str, str] = field(default_factory=dict)
    subtask: str | None = None


def load_expert(place: str) -> Callable[..., Any]:
    """A function of `Experts` by its place, "module:function"."""
    module, _, name = place.partition(":")
    return getattr(importlib.import_module(module), name)


@dataclass(frozen=True)
class Published:
    """One published figure: success and sem (standard error of the mean, None where not given) are fractions."""

    method: str
    success: float
    source: str
    sem: float | None = None


@dataclass(frozen=True)
class PublishedMeans:
    """Means over several tasks, best first. note: which tasks, and what limits the comparison."""

    figures: tuple[Published, ...] = ()
    note: str = ""


class Benchmark(Protocol):
    """Tasks that agents play. Methods with a body are defaults for benchmarks without that notion.

    name: what result files call it.
    config: a YAML file (as `predimem eval --config` reads it) with the benchmark's agents and how they are played; None
    where there is none.
    options: the dataclass of `environment:`.
    experts: what knows the true state, see `Experts`.
    agents: trained agents that are no planner and actor, name -> "module:function", from (name, environment, root of
    the weights or None for the shipped ones) to an `Agent`.
    long_episodes: episodes last minutes, so that films are sped up and traces are kept of few.
    heeds_requests: whether `make_environment` heeds the request, so that an environment serves only agents that request
    the same.
    environments_kept: how many environments one process keeps; None for all.
    """

    name: str
    config: str | None = None
    options: type[EnvironmentOptions] = EnvironmentOptions
    experts: Experts = Experts()
    agents: Mapping[str, str] = MappingProxyType({})
    long_episodes: bool = False
    heeds_requests: bool = False
    environments_kept: int | None = None

    def version(self) -> str:
        """The benchmark's and its simulator's versions: episodes of different versions are never put together."""
        ...

    def all_tasks(self) -> tuple[str, ...]:
        """The tasks that are played where none is named. Raises ValueError where they have to be named."""
        ...

    def listed_tasks(self) -> tuple[str, ...]:
        """The names of all tasks that there are, for `predimem tasks`."""
        return self.all_tasks()

    def in_conditions(self, tasks: Sequence[str], conditions: Sequence[str]) -> tuple[str, ...]:
        """The tasks `tasks`, all where none is named, under each of these conditions. Raises ValueError for unknown
        ones, and here, where tasks have none."""
        raise ValueError(f"the tasks of {self.name} have no conditions: leave --condition out")

    def at_difficulty(self, tasks: Sequence[str], difficulty: str) -> tuple[str, ...]:
        """The tasks `tasks` of a difficulty, all of it where none is named. Raises ValueError for an unknown difficulty
        and for tasks that are not of it, and here, where there is only one."""
        raise ValueError(f"the tasks of {self.name} have no difficulties: leave --difficulty out, got {difficulty!r}")

    def describe(self, task: str) -> str:
        """A line that says what has to be done in a task, called as for `task_name`."""
        return ""

    def task_name(self, task: str) -> str:
        """A task's name in result files, from whatever a user may call it. Raises ValueError for an unknown task,
        naming those that there are."""
        ...

    def make_environment(self, task: str, options: Any, request: EnvironmentRequest) -> Environment:
        """A new environment. task: its name, or the path of its file. options: an instance of `options`."""
        ...

    def task_file(self, task: str) -> str | None:
        """The absolute path of a task that is given as a file, None of any other."""
        return None

    def subtasks(self, task: str) -> Sequence[str] | None:
        """The labels of all subtasks that a planner may have to name in a task (name or file); None where they are not
        known."""
        return None

    def horizon(self, task: str) -> int | None:
        """The control steps that an episode takes at most; None where all tasks are as long."""
        return None

    def categories(self, tasks: Sequence[str]) -> Mapping[str, Sequence[str]] | None:
        """Category -> its tasks, those of `tasks` (names or files) among them; None where there are no categories."""
        return None

    def published(self, task: str) -> tuple[Published, ...]:
        """Every published result for one task, best first."""
        return ()

    def published_note(self) -> str:
        """What limits the comparison with the published results."""
        return ""

    def published_means(self) -> PublishedMeans:
        return PublishedMeans()

    def gripper_trajectory(self, states: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
        """(positions [T, 3] in m, openings [T] in m) of the gripper from the states [T, D] of an episode; None where
        they do not tell."""
        return None

    def prepare(self, images: bool) -> None:
        """Called before an evaluation starts its workers. Raises where this machine lacks what episodes need."""


@runtime_checkable
class GradedByItself(Protocol):
    """A benchmark with evaluation code of its own, which `predimem harness` runs."""

    robot: BareRobot

    def run_harness(
        self,
        task: str,
        make_agent: Callable[[], Agent],
        episodes: int | None,
        on_episode: Callable[[int, bool], object],
    ) -> dict[str, Any]:
        """The benchmark's own result for an agent, `sr` (success rate) among it. on_episode: told (index, success)."""
        ...


@dataclass(frozen=True)
class BareRobot:
    """What a learned agent needs to know of an environment that somebody else steps."""

    hold_action: Callable[[np.ndarray | None], np.ndarray]
    action_dim: int
    control_hz: float


@functools.cache
def load_benchmark(name: str) -> Benchmark:
    """A benchmark by its name, by the path of a Python file that defines `BENCHMARK`, or as "package.module:NAME".

    Raises ValueError where there is none.
    """
    if name.endswith(SUFFIX):
        return _of_file(name)
    place = BENCHMARKS.get(name, name)
    if not is_place(place):
        raise ValueError(
            f"unknown benchmark {name!r}; there are: {', '.join(BENCHMARKS)}; or name the Python file of your own"
            f"{did_you_mean(name, BENCHMARKS)}"
        )
    return load_object(place, "benchmark")


def benchmark_key(name: str) -> str:
    """What `load_benchmark` finds the same benchmark by in every process: files by their absolute path."""
    return str(Path(name).resolve()) if name.endswith(SUFFIX) else name


def _of_file(path: str) -> Benchmark:
    module = load_file(path)
    if not hasattr(module, FILE_OBJECT):
        raise ValueError(f"{path} defines no {FILE_OBJECT}; expected an object of the protocol `Benchmark`")
    return getattr(module, FILE_OBJECT)

"""Makes the episodes of a config: on this machine or on Ray, going on where an earlier run stopped."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Protocol, TypeVar

from datagen.decompose.agreement import own_task
from datagen.former_names import todays_kind
from datagen.inputs import of_models, of_task_files
from predimem.core.config import ConfigError, tasks_as_text, to_dict
from predimem.core.own_code import SUFFIX
from predimem.core.seeds import DEMONSTRATION_SEEDS, check_training_seeds
from predimem.envs.arena.task import Task
from predimem.envs.arena.tasks import TASKS
from predimem.envs.arena.unseen.conditions import check_shares
from predimem.jobs.journal import DataJournal
from predimem.jobs.runner import BackendConfig, run_jobs
from predimem.jobs.tasks import Job, Outcome, Worker


class DataConfig(Protocol):
    """A dataclass that says which episodes to make.

    out: their folder.
    may_differ: keys ("a", "a.b") that do not change an episode, so that two runs into one folder may differ in them.
    """

    may_differ: ClassVar[tuple[str, ...]]

    @property
    def out(self) -> str: ...

    def jobs(self) -> list[Job]:
        """Raises ValueError for tasks that there are not."""
        ...

    def inputs(self) -> dict[str, str]:
        """Fingerprints of what the config names by a path (`datagen.inputs`). Raises WeightsError for weights that are
        missing."""
        ...

    def for_workers(self) -> Any:
        """The same config for processes that have another working directory."""
        ...


@dataclass(frozen=True)
class ArenaDataConfig:
    """What all configs of data of the arena have in common.

    out: the folder of the episodes.
    tasks: ids, names or task files of the arena; empty: all 26.
    episodes, first_seed: so many seeds of each task, from this one on.
    image_px: width and height of the stored images.
    variation: what scenes vary besides (positions, colours, distractors, lights, camera), and in which share of the
    episodes each of these does: `predimem.envs.arena.unseen.conditions.vary`.
    """

    may_differ: ClassVar[tuple[str, ...]] = ("out", "tasks", "episodes", "first_seed")

    @staticmethod
    def complete_data(data: dict[str, Any]) -> dict[str, Any]:
        return tasks_as_text(todays_kind(data))

    out: str
    tasks: tuple[str, ...] = ()
    episodes: int = 8
    first_seed: int = DEMONSTRATION_SEEDS.start
    image_px: int = 128
    variation: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_at_least(self, 1, "episodes", "image_px")
        try:
            check_shares(self.variation)
        except ValueError as error:
            raise ConfigError(f"variation: {error}") from None
        check_training_seeds(self.seeds, "first_seed, episodes")
        if len(set(self.tasks)) != len(self.tasks):
            raise ConfigError(f"each task may be listed once, got {', '.join(self.tasks)}")

    @property
    def seeds(self) -> range:
        return range(self.first_seed, self.first_seed + self.episodes)

    def tasks_by_name(self) -> dict[str, Task]:
        """Raises ValueError for an unknown task, for a task file whose instruction and subtasks disagree, and where two
        entries mean the same task."""
        found = {task.name: task for task in map(own_task, self.tasks)} or {task.name: task for task in TASKS}
        if self.tasks and len(found) < len(self.tasks):
            raise ValueError(f"each task may be named once, in whatever way; got {', '.join(self.tasks)}")
        return found

    def models(self) -> dict[str, str]:
        """The models that episodes are made with: field -> folder of weights, or name of shipped ones."""
        return {}

    def inputs(self) -> dict[str, str]:
        return of_models(self.models()) | of_task_files(self.tasks)

    def jobs(self) -> list[Job]:
        return [Job(name, seed) for name in self.tasks_by_name() for seed in self.seeds]

    def for_workers(self) -> Any:
        files = (str(Path(key).resolve()) if key.endswith(SUFFIX) else key for key in self.tasks)
        return replace(self, tasks=tuple(files))


ConfigT = TypeVar("ConfigT", bound=DataConfig)


def run_generation(
    config: ConfigT,
    make_worker: Callable[[ConfigT], Worker],
    backend: BackendConfig | None = None,
    progress: bool = True,
    retry_errors: bool = False,
) -> list[Outcome]:
    """Make the episodes of `config` that are not there yet; the outcomes of all of them.

    make_worker: picklable; called with the config once in each worker process. See `run_jobs` for deaths, errors and
    Ctrl-C. Before anything is written it raises ValueError for a config that names unknown tasks, and WeightsError for
    models that are not there.
    """
    jobs = config.jobs()
    with DataJournal(
        config.out, _without_keys(to_dict(config)), config.may_differ, type(config), config.inputs()
    ) as journal:
        worker = partial(make_worker, config.for_workers())
        return run_jobs(jobs, worker, journal, backend, progress, retry_errors)


def _without_keys(data: Any) -> Any:
    """Without the keys of endpoints, which belong into no data set."""
    if not isinstance(data, dict):
        return data
    return {name: None if name == "api_key" else _without_keys(value) for name, value in data.items()}


def check_at_least(config: object, least: float, *names: str) -> None:
    """Raises ConfigError unless the numbers of these names are at least `least`."""
    for name in names:
        if getattr(config, name) < least:
            raise ConfigError(f"{name} must be >= {least}, got {getattr(config, name)}")

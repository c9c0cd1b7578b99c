"""What the kinds of data have in common that make episodes from the images of others, without rendering."""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar, Generic, Self, TypeVar

import numpy as np

from datagen.demos.mikasa import TaskSeeds
from datagen.inputs import of_episodes
from predimem.core.config import ConfigError
from predimem.core.episode_folder import episode_path
from predimem.core.episode_writer import save_episode
from predimem.core.episodes import Episode
from predimem.jobs.tasks import Job, Outcome

Source = TypeVar("Source")


@dataclass(frozen=True)
class EditConfig:
    """Which episodes are made of which.

    sources: folders of demonstrations, kept with `keyframes: null`, so that their facts are known.
    out: the folder of the episodes.
    tasks: how many episodes of which tasks.
    left_out: the share of the sources of each task, those with the highest seeds, that are not used: the planner's
        training keeps them for validation.
    """

    may_differ: ClassVar[tuple[str, ...]] = ("out", "tasks")

    sources: tuple[str, ...]
    out: str
    tasks: tuple[TaskSeeds, ...] = ()
    left_out: float = 0.2

    def __post_init__(self) -> None:
        if not 0 <= self.left_out < 1:
            raise ConfigError(f"left_out must be in [0, 1), got {self.left_out}")
        for spec in self.tasks:
            self.check_task(spec.task)

    @staticmethod
    def check_task(task: str) -> None:
        """Raises ConfigError for a task of which no episodes can be made."""

    def jobs(self) -> list[Job]:
        return [Job(spec.task, seed) for spec in self.tasks for seed in spec.seeds]

    def inputs(self) -> dict[str, str]:
        return of_episodes(self.sources)

    def for_workers(self) -> Self:
        return replace(self, sources=tuple(str(Path(source).resolve()) for source in self.sources))


class EditWorker(Generic[Source]):
    """A `predimem.jobs.tasks.Worker`."""

    def __init__(
        self,
        config: EditConfig,
        sources_of: Callable[[Sequence[str], str, float], list[Source]],
        edit: Callable[[Sequence[Source], str, int, np.random.Generator], Episode],
    ):
        """sources_of: from folders, a task and `left_out` to what its episodes are made of. edit: makes one of them, of
        a task and with a seed."""
        self._config, self._edit = config, edit
        self._sources: Any = lru_cache(maxsize=1)(lambda task: sources_of(config.sources, task, config.left_out))

    def play(self, job: Job) -> Outcome:
        began_s = time.perf_counter()
        rng = np.random.default_rng([job.seed, zlib.crc32(job.task.encode())])
        episode = self._edit(self._sources(job.task), job.task, job.seed, rng)
        save_episode(episode_path(self._config.out, job.task, job.seed), episode)
        return Outcome(job.task, job.seed, True, "", len(episode), round(time.perf_counter() - began_s, 3))

    def close(self) -> None:
        pass

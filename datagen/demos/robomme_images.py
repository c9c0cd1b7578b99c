"""What episodes of RoboMME that are made from images of others have in common."""

from __future__ import annotations

import time
import zlib
from functools import cache
from typing import Protocol

import numpy as np

from predimem.core.episode_folder import episode_path, list_episodes
from predimem.core.episode_reader import load_episode
from predimem.core.episode_writer import save_episode
from predimem.core.episodes import Episode
from predimem.envs.robomme.labels import FRONT
from predimem.jobs.tasks import Job, Outcome

COLOURS = ("red", "green", "blue")  # of RoboMME's cubes, in the order of the channels
BRIGHT = 60  # of 255: a cube's own channel is brighter than that
PURE = 0.3  # a cube's other channels are darker than this part of its own; the wooden table's are not
CHANGED = 12  # of 255, in one channel: a pixel that is not the table's
TABLES = 41  # so many first images show the empty table as their median


class FromImagesConfig(Protocol):
    """The fields of a config that `FromImagesWorker` reads."""

    @property
    def sources(self) -> str: ...

    @property
    def out(self) -> str: ...


class FromImagesWorker:
    """A `predimem.jobs.tasks.Worker` that makes some episodes of each.

    The first copy lies where `predimem datagen` looks for it, the others in folders of their own below `out`. It is
    written last, so that a job that was interrupted is done again.

    table(): the front view of the empty table, uint8 [H, W, 3], which is computed at the first call.
    """

    discarded_because = ""

    def __init__(self, config: FromImagesConfig):
        self._config = config
        self.table = cache(lambda: empty_table(config.sources))

    def play(self, job: Job) -> Outcome:
        config, began_s = self._config, time.perf_counter()
        source = load_episode(episode_path(config.sources, job.task, job.seed))
        rng = np.random.default_rng([job.seed, zlib.crc32(job.task.encode())])
        made = self.made_of(source, rng)
        for number, episode in reversed(list(enumerate(made, 1))):
            folder = config.out if number == 1 else f"{config.out}/copy_{number}"
            save_episode(episode_path(folder, job.task, job.seed), episode)
        cause = "" if made else self.discarded_because
        return Outcome(job.task, job.seed, bool(made), cause, len(source), round(time.perf_counter() - began_s, 3))

    def made_of(self, source: Episode, rng: np.random.Generator) -> list[Episode]:
        """The episodes that are made of one; none: it is discarded."""
        raise NotImplementedError

    def close(self) -> None:
        pass


def jobs_of(sources: str, tasks: tuple[str, ...]) -> list[Job]:
    """One for each episode of these tasks. Raises EpisodeError where there is no episode."""
    found = [(path.parent.name, int(path.stem.removeprefix("seed"))) for path in list_episodes(sources)]
    return [Job(task, seed) for task, seed in found if task in tasks]


def cubes(images: np.ndarray) -> np.ndarray:
    """uint8 [..., H, W, 3] -> bool [..., H, W]: what has the pure colour of a cube."""
    highest = images.max(-1).astype(int)
    second = images.sum(-1, dtype=int) - highest - images.min(-1)
    return (highest > BRIGHT) & (second < PURE * highest)


def recoloured(images: np.ndarray, order: tuple[int, int, int]) -> np.ndarray:
    """uint8 [..., H, W, 3] -> uint8 [..., H, W, 3]: channel k of a cube becomes channel `order[k]`."""
    return np.where(cubes(images)[..., None], images[..., list(order)], images)


def things(images: np.ndarray, table: np.ndarray) -> np.ndarray:
    """uint8 [N, H, W, 3] -> bool [N, H, W]: what is not the table, uint8 [H, W, 3]."""
    return np.abs(images.astype(np.int16) - table).max(-1) > CHANGED


def empty_table(sources: str) -> np.ndarray:
    """uint8 [H, W, 3]: nothing stands at the same place in half of the episodes."""
    paths = list_episodes(sources)
    chosen = paths[:: max(1, len(paths) // TABLES)]
    return np.median([load_episode(path).images[FRONT][0] for path in chosen], axis=0).astype(np.uint8)

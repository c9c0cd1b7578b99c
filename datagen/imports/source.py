"""What an importer reads of an episode, and how that becomes an episode file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar, Protocol

import numpy as np

from predimem.core.episode_folder import episode_path
from predimem.core.episode_writer import EpisodeWriter
from predimem.core.episodes import SubtaskSpan
from predimem.core.frames import EpisodeError
from predimem.jobs.tasks import Job


@dataclass(frozen=True, eq=False)
class SourceEpisode:
    """An episode of somebody else's data set.

    name: what error messages call it.
    state: float [T, D]. actions: float [T, A].
    images: of each step camera -> uint8 [H, W, 3], read one after another, so that no episode has to fit into memory.
    """

    name: str
    instruction: str
    control_hz: float
    state: np.ndarray
    actions: np.ndarray
    images: Iterator[Mapping[str, np.ndarray]]
    subtasks: Sequence[SubtaskSpan]
    keyframes: Sequence[int]
    success: bool = True
    metadata: Mapping[str, Any] = field(default_factory=dict)


class Source(Protocol):
    """A data set. It can be pickled, so that worker processes read its episodes.

    benchmark: what episodes name as theirs.
    """

    benchmark: ClassVar[str]

    def jobs(self) -> list[Job]:
        """Task and number of every episode."""
        ...

    def read(self, job: Job) -> SourceEpisode:
        """Raises EpisodeError, naming the file, for what is missing, damaged or of another layout."""
        ...


def store(source: Source, job: Job, out: str | Path) -> int:
    """Write one episode's file; how many steps it has. Raises EpisodeError as `Source.read`."""
    episode = source.read(job)
    _check(episode)
    images = iter(episode.images)
    first = next(images)
    sizes = {camera: (image.shape[0], image.shape[1]) for camera, image in first.items()}
    path = episode_path(out, job.task, job.seed)
    with EpisodeWriter(path, source.benchmark, job.task, job.seed, episode.control_hz, sizes) as writer:
        for shown, state, action in zip(chain([first], images), episode.state, episode.actions, strict=True):
            writer.add(shown, state, action)
        writer.finish(
            instruction=episode.instruction,
            success=episode.success,
            subtasks=episode.subtasks,
            keyframes=episode.keyframes,
            metadata=episode.metadata,
        )
    return len(episode.state)


def _check(episode: SourceEpisode) -> None:
    if not episode.instruction.strip():
        raise EpisodeError(f"{episode.name} has no instruction: the planner is asked with it, so give it one")
    for what, values in (("state", episode.state), ("actions", episode.actions)):
        if values.ndim != 2 or not len(values):
            raise EpisodeError(f"{episode.name}: the {what} have to be numbers [T, D], they are {list(values.shape)}")
        broken = np.flatnonzero(~np.isfinite(values).all(axis=1))
        if len(broken):
            raise EpisodeError(f"{episode.name}: the {what} of step {broken[0]} are not finite: take the episode out")
    if len(episode.state) != len(episode.actions):
        raise EpisodeError(f"{episode.name} has {len(episode.state)} states and {len(episode.actions)} actions")

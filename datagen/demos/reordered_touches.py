"""More orders for the planner of BunchOfColors, SeqOfColors and ChainOfColors, without rendering.

From a few dozen demonstrations a small planner learns by heart which colour comes after which. But what a touch looks
like does not depend on its place in the order: the images of one episode, put into another order and with fewer cubes,
show another episode. Such episodes differ in nothing but what has to be remembered.

An edited episode has the cue with the cubes of its own order, and of each touch the images around its end. Between them
the arm jumps, so that it is for the planner only.
"""

from __future__ import annotations

import re
import time
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np

from datagen.demos.erasing import owners, showing
from datagen.demos.mikasa import TaskSeeds
from predimem.core.config import ConfigError
from predimem.core.episode_folder import episode_path, load_episodes
from predimem.core.episode_writer import save_episode
from predimem.core.episodes import Episode, SubtaskSpan
from predimem.core.frames import Frames
from predimem.core.scene_facts import SceneFacts
from predimem.envs.mikasa.families.touch_many import BUNCH, LIFT, PRESS
from predimem.envs.mikasa.families.touch_one import WAIT, WATCH, touch
from predimem.jobs.tasks import Job, Outcome

APPROACH_STEPS = 3  # of each touch, so many before its end are shown ...
AFTER_STEPS = 2  # ... and the first image after it for so many
PHASE_STEPS = (1, 5)  # how long a cube of the cue shows, and the empty table after it, in the suite's short tasks

_TASK = re.compile(r"(BunchOfColors|SeqOfColors|ChainOfColors)(\d)-VLA-v0")


@dataclass(frozen=True)
class ReorderedTouchesConfig:
    """Which episodes are made of which.

    sources: folders of demonstrations, kept with `keyframes: null`, so that their facts are known. An episode of a
        family is made of one of the same family with as many cubes or more.
    out: the folder of the episodes.
    tasks: how many episodes of which tasks.
    left_out: the share of the sources of each task, those with the highest seeds, that are not used: the planner's
        training keeps them for validation.
    """

    may_differ: ClassVar[tuple[str, ...]] = ("out", "tasks")

    kind: Literal["reordered_touches"] = "reordered_touches"
    sources: tuple[str, ...] = ("runs/data/mikasa_sequences",)
    out: str = "runs/data/mikasa_sequences_reordered"
    tasks: tuple[TaskSeeds, ...] = ()
    left_out: float = 0.1

    def __post_init__(self) -> None:
        if not 0 <= self.left_out < 1:
            raise ConfigError(f"left_out must be in [0, 1), got {self.left_out}")
        for spec in self.tasks:
            _family_and_size(spec.task)

    def jobs(self) -> list[Job]:
        return [Job(spec.task, seed) for spec in self.tasks for seed in spec.seeds]

    def for_workers(self) -> ReorderedTouchesConfig:
        return replace(self, sources=tuple(str(Path(source).resolve()) for source in self.sources))


class ReorderedTouchesWorker:
    """A `predimem.jobs.tasks.Worker`."""

    def __init__(self, config: ReorderedTouchesConfig):
        self._config = config
        self._sources = lru_cache(maxsize=1)(lambda task: sources_of(config.sources, task, config.left_out))

    def play(self, job: Job) -> Outcome:
        began_s = time.perf_counter()
        rng = np.random.default_rng([job.seed, zlib.crc32(job.task.encode())])
        sources = self._sources(job.task)
        episode = reordered(sources[rng.integers(len(sources))], job.task, job.seed, rng)
        save_episode(episode_path(self._config.out, job.task, job.seed), episode)
        return Outcome(job.task, job.seed, True, "", len(episode), round(time.perf_counter() - began_s, 3))

    def close(self) -> None:
        pass


def sources_of(folders: Sequence[str], task: str, left_out: float) -> list[Episode]:
    """The successful episodes of which episodes of a task can be made, those with the highest seeds of each task left
    out. Raises ValueError if there are none."""
    family, size = _family_and_size(task)
    usable: list[Episode] = []
    for path in sorted(path for folder in folders for path in Path(folder).glob(f"{family}?-VLA-v0")):
        if _family_and_size(path.name)[1] >= size:
            episodes = sorted(load_episodes(path), key=lambda episode: episode.seed)
            usable += [e for e in episodes[: round(len(episodes) * (1 - left_out))] if _is_straight(e)]
    if not usable:
        raise ValueError(f"expected successful episodes of {family} with {size} cubes or more in {', '.join(folders)}")
    return usable


@dataclass
class _Cut:
    """The episode that is being made: the source's step that each of its steps shows, and what it is."""

    steps: list[int] = field(default_factory=list)
    subtasks: list[SubtaskSpan] = field(default_factory=list)
    keyframes: list[int] = field(default_factory=list)

    def add(self, label: str, steps: Sequence[int], keyframe: bool = False) -> None:
        """A piece of a subtask; keyframe: whether its first step is one."""
        start = len(self.steps)
        if keyframe:
            self.keyframes.append(start)
        self.steps += steps
        if self.subtasks and self.subtasks[-1].label == label:
            start = self.subtasks.pop().start
        self.subtasks.append(SubtaskSpan(start, len(self.steps), label))


def reordered(source: Episode, task: str, seed: int, rng: np.random.Generator) -> Episode:
    """An episode of `task` in another order, of the images of `source`."""
    family, size = _family_and_size(task)
    spans = {span.label: span for span in source.subtasks}
    touches = [span.label for span in source.subtasks if span.label.startswith(touch(""))]
    order = [touches[i] for i in rng.permutation(len(touches))[:size]]
    shown = int(rng.integers(PHASE_STEPS[0], PHASE_STEPS[1], endpoint=True))
    together = family == BUNCH.name
    if together:  # the script touches them in the order in which they are listed, which is that of the source
        order.sort(key=touches.index)
        cues = [spans[WATCH].start]
    else:
        begins = dict(zip(touches, [k for k in source.keyframes if k < spans[WATCH].end], strict=True))
        cues = [begins[label] for label in order]
    cut = _Cut()
    for cue in cues:
        cut.add(WATCH, [cue] * shown, keyframe=True)
    cut.add(WAIT, [spans[WAIT].start] * int(rng.integers(PHASE_STEPS[0], PHASE_STEPS[1], endpoint=True)))
    after = [spans[touches[0]].start] * AFTER_STEPS
    for label in (*order, PRESS):
        cut.add(label, after, keyframe=label != order[0])
        cut.add(label, list(_approach(spans[label])))
        after = [spans[label].end] * AFTER_STEPS
    cut.add(LIFT, after, keyframe=True)
    fresh = np.diff(cut.steps, prepend=-1) != 0
    taken, rows = np.array(cut.steps)[fresh], np.cumsum(fresh) - 1
    images = {camera: np.stack([frames[step] for step in taken]) for camera, frames in source.images.items()}
    if together:
        for camera, image in _cue_of(source, [label.removeprefix(touch("")) for label in order]).items():
            images[camera][0] = image
    return replace(
        source,
        task=task,
        seed=seed,
        images={camera: Frames(stack, rows) for camera, stack in images.items()},
        state=source.state[cut.steps],
        actions=np.zeros((len(cut.steps), source.actions.shape[1]), np.float32),
        subtasks=tuple(cut.subtasks),
        keyframes=tuple(cut.keyframes),
        goal=", then ".join([*order, PRESS]),
        alternatives=None,
        metadata={"edited_from": [source.task, source.seed]},
    )


def _is_straight(episode: Episode) -> bool:
    """Whether it succeeded, and did nothing twice."""
    labels = [span.label for span in episode.subtasks]
    return episode.success and len(set(labels)) == len(labels)


def _approach(span: SubtaskSpan) -> Iterator[int]:
    yield from range(max(span.start + 1, span.end - APPROACH_STEPS), span.end)


def _cue_of(source: Episode, shown: Sequence[str]) -> dict[str, np.ndarray]:
    """The image of the cue with these of its objects, by camera."""
    facts = SceneFacts.of_metadata(source.metadata, f"{source.task} seed {source.seed}")
    wait = next(span.start for span in source.subtasks if span.label == WAIT)
    numbers = [facts.objects.index(name) for name in shown]
    images = {}
    for column, (camera, frames) in enumerate(source.images.items()):
        own = owners(frames[0], frames[wait], facts.pixels[0, :, column])
        images[camera] = showing(frames[0], frames[wait], own, numbers)
    return images


def _family_and_size(task: str) -> tuple[str, int]:
    """The family and the number of cubes. Raises ConfigError for tasks of other families, and for -Long ones."""
    match = _TASK.fullmatch(task)
    if match is None:
        raise ConfigError(f"expected a short task of BunchOfColors, SeqOfColors or ChainOfColors, got {task}")
    return match[1], int(match[2])

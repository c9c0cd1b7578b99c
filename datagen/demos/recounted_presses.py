"""More counts for the planner of BlinkCount, without rendering.

Few demonstrations have many blinks. But one blink looks like another, and one press like another: the images of an
episode, with other numbers of both, show another episode.

An edited episode has as many presses as blinks. After each press, and each time the hand has been raised, the arm rests
for a while, as it does when it waits for the planner. The arm jumps here and there, so that it is for the planner only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from datagen.demos.cut import Cut
from datagen.demos.edits import EditConfig, EditWorker
from predimem.core.config import ConfigError
from predimem.core.episode_folder import load_episodes
from predimem.core.episodes import Episode, SubtaskSpan
from predimem.envs.mikasa.families.blink_count import PRESS_BLACK, PRESS_RED, RAISE, WATCH

REST_STEPS = (4, 10)  # for so long the first image of a subtask: the arm rests until it is told what is next

_TASKS = {  # how many blinks an episode has at most, as in the suite
    f"BlinkCountButtonPress{level}-VLA-v0": most for level, most in (("Easy", 3), ("Medium", 5), ("Hard", 7))
}


@dataclass(frozen=True)
class RecountedPressesConfig(EditConfig):
    """For BlinkCount's short tasks. An episode is made of one of any of them."""

    kind: Literal["recounted_presses"] = "recounted_presses"
    sources: tuple[str, ...] = ("runs/data/mikasa_sequences",)
    out: str = "runs/data/mikasa_sequences_recounted"
    left_out: float = 0.1

    @staticmethod
    def check_task(task: str) -> None:
        if task not in _TASKS:
            raise ConfigError(f"expected one of {', '.join(_TASKS)}, got {task}")


def recounted_presses_worker(config: RecountedPressesConfig) -> EditWorker[Episode]:
    return EditWorker(config, sources_of, recounted)


def sources_of(folders: Sequence[str], task: str, left_out: float) -> list[Episode]:
    """The successful episodes with two presses or more, those with the highest seeds of each task left out.
    Raises ValueError if there are none."""
    usable: list[Episode] = []
    for path in (Path(folder) / name for name in _TASKS for folder in folders):
        episodes = sorted(load_episodes(path), key=lambda episode: episode.seed) if path.is_dir() else []
        usable += [e for e in episodes[: round(len(episodes) * (1 - left_out))] if _is_straight(e)]
    if not usable:
        raise ValueError(f"expected successful episodes of BlinkCount with two presses in {', '.join(folders)}")
    return usable


def recounted(sources: Sequence[Episode], task: str, seed: int, rng: np.random.Generator) -> Episode:
    """An episode of `task` with another number of blinks and presses, of the images of one of the sources."""
    source = sources[rng.integers(len(sources))]
    count = int(rng.integers(1, _TASKS[task], endpoint=True))
    watch, *spans = source.subtasks
    blinks = [k for k in source.keyframes if k < watch.end]
    cut = Cut()
    cut.add(WATCH, range(watch.start, blinks[0]))
    for _ in range(count - 1):
        which = rng.integers(len(blinks) - 1)
        cut.add(WATCH, range(blinks[which], blinks[which + 1]), keyframe=True)
    cut.add(WATCH, range(blinks[-1], watch.end), keyframe=True)
    reds = [i for i, span in enumerate(spans) if span.label == PRESS_RED]
    for number in range(count):
        which = int(rng.choice(reds[1:])) if number else reds[0]
        pressed, raised = spans[which : which + 2]
        cut.add(PRESS_RED, _rest_and_go(rng, pressed))
        cut.add(RAISE, _rest_and_go(rng, raised), keyframe=True)
    cut.add(PRESS_BLACK, _rest_and_go(rng, spans[-1]))
    goal = f"press the red button {count} times, then the black button"
    return cut.episode(source, cut.images(source), task, seed, goal)


def _rest_and_go(rng: np.random.Generator, span: SubtaskSpan) -> list[int]:
    return [span.start] * int(rng.integers(*REST_STEPS, endpoint=True)) + list(range(span.start, span.end))


def _is_straight(episode: Episode) -> bool:
    """Whether it succeeded with two presses or more, and pressed and raised the hand in turn."""
    blinks = sum(k < episode.subtasks[0].end for k in episode.keyframes)
    turns = [WATCH, *(PRESS_RED, RAISE) * blinks, PRESS_BLACK]
    return episode.success and blinks >= 2 and [span.label for span in episode.subtasks] == turns

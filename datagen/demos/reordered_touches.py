"""More orders for the planner of BunchOfColors, SeqOfColors and ChainOfColors, without rendering.

From a few dozen demonstrations a small planner learns by heart which colour comes after which. But what a touch looks
like does not depend on its place in the order: the images of one episode, put into another order and with fewer cubes,
show another episode. Such episodes differ in nothing but what has to be remembered.

An edited episode has the cue with the cubes of its own order, and of each touch the images of the approach and of the
arm at rest over it. Between them the arm jumps, so that it is for the planner only.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from datagen.demos.cut import Cut
from datagen.demos.edits import EditConfig, EditWorker
from datagen.demos.erasing import owners, showing
from predimem.core.config import ConfigError
from predimem.core.episode_folder import load_episodes
from predimem.core.episodes import Episode, SubtaskSpan
from predimem.core.scene_facts import SceneFacts
from predimem.envs.mikasa.families.touch_many import BUNCH, LIFT, PRESS
from predimem.envs.mikasa.families.touch_one import WAIT, WATCH, touch

APPROACH_STEPS = 16  # of each touch, so many before its end are shown, ...
APPROACH_M = 0.008  # ... at which the hand is at least so far away: images nearer by look as those of the end
REST_STEPS = (4, 10)  # ... and for so long the arm at rest after it, until it is told what is next:
REST_M = 0.015  # what the source shows until the hand has left by so much, and then the last of that
PHASE_STEPS = (1, 5)  # how long a cube of the cue shows, and the empty table after it, in the suite's short tasks

_TASK = re.compile(r"(BunchOfColors|SeqOfColors|ChainOfColors)(\d)-VLA-v0")


@dataclass(frozen=True)
class ReorderedTouchesConfig(EditConfig):
    """For short tasks of the three families. An episode is made of one of its family with as many cubes or more."""

    kind: Literal["reordered_touches"] = "reordered_touches"
    sources: tuple[str, ...] = ("runs/data/mikasa_sequences", "runs/data/mikasa_sequences_late")
    out: str = "runs/data/mikasa_sequences_reordered"
    left_out: float = 0.1

    @staticmethod
    def check_task(task: str) -> None:
        _family_and_size(task)


def reordered_touches_worker(config: ReorderedTouchesConfig) -> EditWorker[Episode]:
    return EditWorker(config, sources_of, reordered)


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
        raise ValueError(
            f"expected successful episodes of {family} with {size} cubes or more, with an image of each cube of the "
            f"cue, in {', '.join(folders)}"
        )
    return usable


def reordered(sources: Sequence[Episode], task: str, seed: int, rng: np.random.Generator) -> Episode:
    """An episode of `task` in another order, of the images of one of the sources."""
    source = sources[rng.integers(len(sources))]
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
    cut = Cut()
    for cue in cues:
        cut.add(WATCH, [cue] * shown, keyframe=True)
    cut.add(WAIT, [spans[WAIT].start] * int(rng.integers(PHASE_STEPS[0], PHASE_STEPS[1], endpoint=True)))
    start = spans[touches[0]].start
    for label in (*order, PRESS, LIFT):
        cut.add(label, _rest(source, start, int(rng.integers(*REST_STEPS, endpoint=True))), keyframe=label != order[0])
        if label != LIFT:
            cut.add(label, _approach(source, spans[label]))
            start = spans[label].end
    images = cut.images(source)
    if together:
        for camera, image in _cue_of(source, [label.removeprefix(touch("")) for label in order]).items():
            images[camera][0] = image
    return cut.episode(source, images, task, seed, ", then ".join([*order, PRESS]))


def _is_straight(episode: Episode) -> bool:
    """Whether it succeeded, did nothing twice, and has an image of its own of each keyframe of the cue: the one before
    would show another cube."""
    labels = [span.label for span in episode.subtasks]
    cue = [k for k in episode.keyframes if episode.subtask_at(k) == WATCH]
    return episode.success and len(set(labels)) == len(labels) and bool(episode.image_steps[cue].all())


def _rest(source: Episode, start: int, steps: int) -> list[int]:
    """So many steps of an arm that stays where it is at `start`."""
    away_m = np.linalg.norm(source.state[start : start + steps, :3] - source.state[start, :3], axis=1)
    stays = int(np.argmax([*(away_m >= REST_M), True]))
    return [min(step, start + stays - 1) for step in range(start, start + steps)]


def _approach(source: Episode, span: SubtaskSpan) -> list[int]:
    """The last steps of a subtask at which the hand has left and is still under way; its first one where none is."""
    hand_m = source.state[span.start : span.end, :3]
    left = np.linalg.norm(hand_m - source.state[span.start, :3], axis=1) >= REST_M
    there = np.linalg.norm(hand_m - source.state[span.end, :3], axis=1) < APPROACH_M
    under_way = span.start + np.flatnonzero(np.logical_or.accumulate(left) & ~there)
    return under_way[-APPROACH_STEPS:].tolist() or [span.start]


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

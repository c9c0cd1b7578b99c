"""What heads learn from: a teacher's episodes, and the batches that are drawn from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from actor.memory_head.config import HeadTraining
from actor.memory_head.rows import RowLayout
from predimem.core.types import Observation

ANY = -1  # the label of a step at which any action is right


@dataclass(frozen=True)
class Lesson:
    """One episode. labels: int64 [T], the right action of each step, or `ANY`."""

    observations: tuple[Observation, ...]
    labels: np.ndarray

    @cached_property
    def layout(self) -> RowLayout:
        return RowLayout.of(self.observations[0])

    @cached_property
    def rows(self) -> np.ndarray:
        """float32 [T, D]"""
        return np.stack([self.layout.of_frame(observation) for observation in self.observations])


@dataclass(frozen=True)
class Batch:
    """Episodes, padded at their ends to the same length T.

    rows: float32 [B, T, D]. steps: int64 [B, S], the decisions that count. labels: int64 [B, S].
    """

    lessons: tuple[Lesson, ...]
    rows: np.ndarray
    steps: np.ndarray
    labels: np.ndarray


def draw_batch(
    tasks: Mapping[str, Sequence[Lesson]], training: HeadTraining, done: float, random: np.random.Generator
) -> Batch:
    """Episodes of one task, and decisions of each, with right actions drawn equally often where that can be.

    tasks: task -> episodes, the shorter tasks first. done: the share of the training that is over, in [0, 1).
    """
    joined = 1 + int(min(2 * done, 1) * (len(tasks) - 1))
    lessons = _draw(list(tasks.values())[random.integers(joined)], training, random)
    length = max(len(lesson.labels) for lesson in lessons)
    rows = np.zeros((len(lessons), length, lessons[0].layout.width), np.float32)
    steps, labels = np.zeros((2, len(lessons), training.decisions), np.int64)
    counts = np.bincount(np.concatenate([lesson.labels[lesson.labels != ANY] for lesson in lessons]))
    for n, lesson in enumerate(lessons):
        rows[n, : len(lesson.labels)] = lesson.rows
        known = np.flatnonzero(lesson.labels != ANY)
        weights = 1 / counts[lesson.labels[known]]
        if len(known) > training.decisions:
            known = random.choice(known, training.decisions, replace=False, p=weights / weights.sum())
        steps[n] = np.resize(known, training.decisions)
        labels[n] = lesson.labels[steps[n]]
    return Batch(lessons, rows, steps, labels)


def _draw(lessons: Sequence[Lesson], training: HeadTraining, random: np.random.Generator) -> tuple[Lesson, ...]:
    longest = max(len(lesson.labels) for lesson in lessons)
    size = max(1, min(training.batch, training.frames // longest))
    return tuple(lessons[n] for n in random.integers(len(lessons), size=size))

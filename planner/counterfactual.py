"""Counterfactual memory augmentation: the memory of one episode is put before the recent window of another.

The right answer then follows from the memory alone. Two episodes of a task with the same instruction differ in their
layout, and some also in their hidden state, such as which drawer is empty. Until their subtasks part, the window of
one fits the memory of either; it does so for a moment longer, until the arm shows where it is heading.
"""

from __future__ import annotations

from dataclasses import replace

from planner.replay import Sample, frame_at
from predimem.core.episodes import Episode


def with_memory_of(sample: Sample, other: Episode, counterfactual_steps: int, step_grid: int = 1) -> Sample:
    """The same moment with the keyframes of `other`, at the same points of its subtasks, and its label.

    The sample stays unchanged if its window shows something that `other` would not do: a step of a subtask that
    `other` does not have at this place, `counterfactual_steps` or more after that subtask began. The keyframes lie on
    `step_grid`.
    """
    own = sample.episode
    if len(own.subtasks) != len(other.subtasks):
        return sample
    if any(not _fits(own, other, frame.step, counterfactual_steps) for frame in sample.snapshot.recent):
        return sample
    points = (_same_point(own, other, frame.step) for frame in sample.snapshot.keyframes)
    steps = [point // step_grid * step_grid for point in points]
    now = _span(own, sample.snapshot.step)
    past = sample.snapshot.past_subtasks
    renamed = {mine.label: its.label for mine, its in zip(own.subtasks, other.subtasks, strict=True)}
    snapshot = replace(
        sample.snapshot,
        keyframes=tuple(frame_at(other, step) for step in steps),
        past_subtasks=tuple(renamed[label] for label in past),
    )
    label = other.subtasks[now].label
    return replace(sample, snapshot=snapshot, subtask=label, sources=(other,) * len(steps))


def _fits(own: Episode, other: Episode, step: int, counterfactual_steps: int) -> bool:
    index = _span(own, step)
    span = own.subtasks[index]
    return span.label == other.subtasks[index].label or step - span.start < counterfactual_steps


def _same_point(own: Episode, other: Episode, step: int) -> int:
    """The step of `other` that has got as far within the same subtask as `step` of `own`."""
    index = _span(own, step)
    mine, its = own.subtasks[index], other.subtasks[index]
    return its.start + (step - mine.start) * (its.end - its.start) // (mine.end - mine.start)


def _span(episode: Episode, step: int) -> int:
    return next(i for i, span in enumerate(episode.subtasks) if span.start <= step < span.end)

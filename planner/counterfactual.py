"""Counterfactual memory augmentation: the memory of one episode is put before the recent window of another.

The right answer then follows from the memory alone. Two episodes of a task with the same instruction differ in their
layout, and some also in their hidden state, such as which drawer is empty. Until their subtasks part, the window of
one fits the memory of either; it does so for a moment longer, until the arm shows where it is heading.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from planner.replay import Replay, Sample, frame_at
from predimem.core.episodes import Episode


def with_memory_of(sample: Sample, other: Episode, counterfactual_steps: int, step_grid: int = 1) -> Sample:
    """The same moment with the keyframes of `other`, at the same points of its subtasks, and its label.

    The sample stays unchanged if its window shows something that `other` would not do: a step of a subtask that
    `other` does not have at this place, `counterfactual_steps` or more after that subtask began, and if either episode
    goes back to an earlier subtask. The keyframes lie on `step_grid`.
    """
    own = sample.episode
    if not _can_be_exchanged(sample, other, counterfactual_steps):
        return sample
    points = (_same_point(own, other, frame.step) for frame in sample.snapshot.keyframes)
    steps = [point // step_grid * step_grid for point in points]
    past = sample.snapshot.past_subtasks
    renamed = {mine.label: its.label for mine, its in zip(own.subtasks, other.subtasks, strict=True)}
    snapshot = replace(
        sample.snapshot,
        keyframes=tuple(frame_at(other, step) for step in steps),
        past_subtasks=tuple(renamed[label] for label in past),
    )
    return replace(sample, snapshot=snapshot, subtask=_label(sample, other), sources=(other,) * len(steps))


def with_replayed_memory(
    sample: Sample, other: Episode, counterfactual_steps: int, replay: Callable[[], Replay]
) -> Sample:
    """As `with_memory_of`, for a memory of one's own: with what it held of `other` at the same point.

    replay: replays that memory on `other`; it is only called where the memory can be exchanged.
    """
    if not _can_be_exchanged(sample, other, counterfactual_steps):
        return sample
    held = replay()[_same_point(sample.episode, other, sample.snapshot.step)]
    if len(held.recent) != len(sample.snapshot.recent):
        return sample  # one of the windows is not full yet, and nothing is older than it
    snapshot = replace(sample.snapshot, keyframes=held.keyframes, past_subtasks=held.past_subtasks)
    return replace(sample, snapshot=snapshot, subtask=_label(sample, other), sources=(other,) * len(held.keyframes))


def _can_be_exchanged(sample: Sample, other: Episode, counterfactual_steps: int) -> bool:
    own = sample.episode
    alike = len(own.subtasks) == len(other.subtasks) and not own.goes_back and not other.goes_back
    return alike and all(_fits(own, other, f.step, counterfactual_steps) for f in sample.snapshot.recent)


def _label(sample: Sample, other: Episode) -> str:
    """What is due in `other` where `sample` is."""
    return other.subtasks[_span(sample.episode, sample.snapshot.step)].label


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

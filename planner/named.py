"""An episode as the planner that drove it named its subtasks: some of them later than they were due.

Labels say what is due. A planner that has not noticed a change remembers nothing of it, and must be shown that: where
it remembered what it has not noticed, memory alone would tell it to go on.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

from predimem.core.episodes import Episode, SubtaskSpan


def as_named(episode: Episode) -> Episode:
    """The same episode, whose spans begin when the driver named them (metadata `spoken`). A subtask that it never named
    while it was due is missing: the one before it goes on. Without `spoken`, the episode itself.
    """
    if not episode.metadata.get("spoken"):
        return episode
    first, *others = episode.subtasks
    begun = [first, *(replace(span, start=at) for span in others if (at := _named_at(episode, span)) is not None)]
    ends = [*(after.start for after in begun[1:]), episode.subtasks[-1].end]
    spans = tuple(replace(span, end=end) for span, end in zip(begun, ends, strict=True))
    return replace(episode, subtasks=spans)


def unnamed_steps(episode: Episode) -> list[range]:
    """When the driver named another subtask than the one that was due; without `spoken`, never."""
    spans = episode.subtasks
    return [range(start, end) for span in spans for start, end, label in _said(episode, span) if label != span.label]


def _named_at(episode: Episode, span: SubtaskSpan) -> int | None:
    return next((start for start, _, label in _said(episode, span) if label == span.label), None)


def _said(episode: Episode, span: SubtaskSpan) -> Iterator[tuple[int, int, str]]:
    """(from when, until when, which label) was named in a span."""
    spoken = episode.metadata.get("spoken") or []
    for (start, label), (end, _) in pairwise([*spoken, (len(episode), "")]):
        start, end = max(start, span.start), min(end, span.end)
        if start < end:
            yield start, end, label

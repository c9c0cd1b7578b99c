"""Which frames a planner is taught to nominate, and when it does so."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from itertools import pairwise
from typing import Literal

from memory_bank import MemoryConfig
from predimem.core.episodes import Episode
from predimem.core.types import MemorySnapshot

Targets = Literal["annotated", "subtask_ends", "changes"]


def keyframe_targets(
    episode: Episode, which: str, told: Sequence[str] = (), events: Sequence[str] = ()
) -> tuple[int, ...]:
    """The steps at which the planner is taught to nominate a frame (see `planner.dataset.DatasetConfig`)."""
    of_subtasks = (step for step in _targets(episode, which) if not _ends_one_of(told, episode, step))
    return tuple(sorted({*of_subtasks, *_ends_of_events(episode, events)}))


def _ends_of_events(episode: Episode, kinds: Sequence[str]) -> list[int]:
    happened = episode.metadata.get("events", []) if kinds else []
    return [event["end"] for event in happened if _matches(event["kind"], kinds) and event["end"] < len(episode)]


def _ends_one_of(patterns: Sequence[str], episode: Episode, step: int) -> bool:
    before = episode.subtask_at(step - 1) if step > 0 and patterns else ""
    return bool(before) and before != episode.subtask_at(step) and _matches(before, patterns)


def _targets(episode: Episode, which: str) -> tuple[int, ...]:
    if which == "annotated":
        return episode.keyframes
    if which == "changes":
        pairs = zip(episode.subtasks, episode.subtasks[1:], strict=False)
        return tuple(after.start for before, after in pairs if before.label != after.label)
    ends = (max((k for k in episode.keyframes if s.start <= k < s.end), default=None) for s in episode.subtasks)
    return tuple(step for step in ends if step is not None)


def frames_back(episode: Episode, target: int, traceless: Sequence[str], window: int) -> int:
    """How many timesteps of the recent window the nominated frame is older than the one that shows `target`.

    traceless: patterns as in `fnmatch` of the subtasks at whose end the oldest frame of the window is nominated. One
        that goes on, because only an event is the target, or comes again, because something slipped, is not at its end.
    window: timesteps of the recent window.
    """
    before, after = episode.subtask_at(max(target - 1, 0)), episode.subtask_at(target)
    comes_again = any(span.start >= target and span.label == before for span in episode.subtasks)
    return window - 1 if _matches(before, traceless) and before != after and not comes_again else 0


def nominated_frames(
    episode: Episode,
    which: str,
    traceless: Sequence[str],
    memory: MemoryConfig,
    told: Sequence[str] = (),
    events: Sequence[str] = (),
) -> tuple[int, ...]:
    """The steps of the frames that the planner is taught to nominate."""
    stride, window = memory.recent_stride_steps, memory.recent_window
    targets = keyframe_targets(episode, which, told, events)
    return tuple(max(step - stride * frames_back(episode, step, traceless, window), 0) for step in targets)


def keyframe_positions(
    snapshot: MemorySnapshot, targets: Sequence[int], stride_steps: int, back: Sequence[int] | None = None
) -> tuple[int, ...]:
    """1-indexed positions in the window of the frames to nominate: the first frame at or after each target, which shows
    what came about, or the one that is `back[i]` timesteps older than it."""
    recent = [frame.step for frame in snapshot.recent]
    near = (next((i for i, step in enumerate(recent) if 0 <= step - target < stride_steps), None) for target in targets)
    shown = (i - n for i, n in zip(near, back or [0] * len(targets), strict=True) if i is not None)
    return tuple(dict.fromkeys(i + 1 for i in shown if i >= 0))


def own_nominations(episode: Episode, traceless: Sequence[str], back_steps: int) -> list[tuple[int, int]]:
    """(frame, when it was nominated) of the planner that drove the episode; empty where it is not known.

    A planner that was not taught to nominate the oldest frame after `traceless` subtasks is replayed as if it had been:
    where it named another subtask and nominated the frame before it, the frame `back_steps` earlier takes its place.
    """
    frames: list[int] = episode.metadata.get("nominated_steps") or []
    times: list[int] = episode.metadata.get("nominated_at") or frames
    moved: dict[int, int] = {}
    for (_, before), (named_at, after) in pairwise(episode.metadata.get("spoken") or []):
        if after != before and _matches(before, traceless):
            here = (step for step, at in zip(frames, times, strict=True) if at == named_at and at - step < back_steps)
            moved |= {step: max(step - back_steps, 0) for step in here}
    return [(moved.get(step, step), at) for step, at in zip(frames, times, strict=True)]


def _matches(label: str, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(label, pattern) for pattern in patterns)

"""What a snapshot has to say, whichever memory made it: the prompt and the runtime rely on it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from memory_bank.config import MemoryConfig
from predimem.core.types import Frame, MemorySnapshot


class MemoryFault(ValueError):
    """A memory of one's own that breaks the contract: says what was expected and what came."""


def check_snapshot(
    snapshot: MemorySnapshot, config: MemoryConfig, episode_id: str, instruction: str, step: int
) -> MemorySnapshot:
    """The snapshot itself, if it is one of this episode at control step `step`. Raises MemoryFault.

    Cheap enough for every control step: images are not looked at.
    """
    if not isinstance(snapshot, MemorySnapshot):
        raise MemoryFault(f"snapshot() has to return a MemorySnapshot, it returned {type(snapshot).__name__}")
    for name, expected in (("episode_id", episode_id), ("instruction", instruction), ("step", step)):
        if (came := getattr(snapshot, name)) != expected:
            raise MemoryFault(f"snapshot.{name} has to be {expected!r}, it is {came!r}")
    for name in ("recent", "keyframes", "past_subtasks", "past_sessions"):
        if not isinstance(getattr(snapshot, name), tuple):
            raise MemoryFault(f"snapshot.{name} has to be a tuple, so that it cannot change later")
    _check_recent(snapshot, config)
    _check_keyframes(snapshot, config)
    if snapshot.past_subtasks and not config.past_subtasks:
        raise MemoryFault("snapshot.past_subtasks is not shown to the planner unless memory: {past_subtasks: true}")
    return snapshot


def _check_recent(snapshot: MemorySnapshot, config: MemoryConfig) -> None:
    recent = _steps(snapshot.recent)
    if not recent or recent[-1] != snapshot.step or not _ascending(recent):
        raise MemoryFault(
            f"snapshot.recent has to hold frames of ascending steps, the last one that of step {snapshot.step}; "
            f"it holds the steps {recent}"
        )
    if len(recent) > config.recent_window:
        raise MemoryFault(f"snapshot.recent has {len(recent)} frames, memory: recent_window is {config.recent_window}")


def _check_keyframes(snapshot: MemorySnapshot, config: MemoryConfig) -> None:
    recent, keyframes = _steps(snapshot.recent), _steps(snapshot.keyframes)
    if not keyframes:
        return
    if not config.keyframes:
        raise MemoryFault("snapshot.keyframes has to be empty where the config says keyframes: false")
    if not _ascending(keyframes):
        raise MemoryFault(f"snapshot.keyframes has to be oldest first, each step once; the steps are {keyframes}")
    own = tuple(step for step in keyframes if step >= 0)  # others are from before the episode
    if keyframes[-1] >= recent[0] or (own and len(recent) < config.recent_window):
        raise MemoryFault(
            f"keyframes have to be older than the recent window, which is {recent} ({config.recent_window} timesteps "
            f"when it is full); they are {keyframes}. RecentWindow.older() leaves the others out"
        )
    if config.keyframe_capacity is not None and len(own) > config.keyframe_capacity:
        raise MemoryFault(f"{len(own)} keyframes, memory: keyframe_capacity is {config.keyframe_capacity}")


def _steps(frames: Sequence[Frame]) -> tuple[int, ...]:
    return tuple(frame.step for frame in frames)


def _ascending(steps: tuple[int, ...]) -> bool:
    return all(before < after for before, after in pairwise(steps))

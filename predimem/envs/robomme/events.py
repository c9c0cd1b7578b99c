"""What a scene of RoboMME shows for a while and hides again: the moments that have to be remembered."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

AWAY_M = 1.0  # RoboMME takes its containers out of the scene to show what is under them; robots lift them less
AFTER_STEPS = 12  # after something begins to be shown it is to be seen well
HELD_BELOW_M = 0.07  # the opening of a gripper that is not open
WITHIN_STEPS = 4  # keyframes that are no further apart are one
HIGHLIGHTED_STEPS = range(10, 101)  # of RoboMME's own counting, in which PickHighlight marks its cubes


def shown(simulation: Any) -> str:
    """What is to be seen now and not later, "" for nothing; it changes where something new is to be seen."""
    if simulation.spec.id == "PickHighlight":
        return "highlighted" if int(simulation.elapsed_steps) in HIGHLIGHTED_STEPS else ""
    bins = getattr(simulation, "spawned_bins", [])
    if any(float(thing.pose.p[0, 2]) > AWAY_M for thing in bins):
        return "uncovered"
    step = int(simulation.elapsed_steps)
    for number, (_, _, start, end) in enumerate(getattr(simulation, "swap_schedule", [])):
        if start <= step < end:
            return f"swap {number}"
    return ""


def appearances(seen: Sequence[str]) -> list[int]:
    """Indices a little after something began to be shown (`shown`, for each step) that is hidden later."""
    began = (row for row, now in enumerate(seen) if now and now != (seen[row - 1] if row else ""))
    return [row + AFTER_STEPS for row in began]


def grips(openings: Sequence[float]) -> list[int]:
    """Indices at which a gripper, so far open at each step (m), begins to close or to open."""
    closed = np.asarray(openings) < HELD_BELOW_M
    return (np.flatnonzero(closed[1:] != closed[:-1]) + 1).tolist()


def apart(indices: Iterable[int], length: int) -> tuple[int, ...]:
    """Those below `length` in order, without those that come right after another one."""
    kept: list[int] = []
    for index in sorted(index for index in indices if index < length):
        if not kept or index - kept[-1] > WITHIN_STEPS:
            kept.append(int(index))
    return tuple(kept)


def video_keyframes(openings: Sequence[float], seen: Sequence[str]) -> tuple[int, ...]:
    """The indices of a conditioning video's keyframes: its first frame, where the gripper begins to close or to open,
    and where something is shown that is hidden later."""
    return apart([0, *grips(openings), *appearances(seen)], len(openings))

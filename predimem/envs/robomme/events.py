"""What a scene of RoboMME shows for a while and hides again: the moments that have to be remembered."""

from __future__ import annotations

from typing import Any

AWAY_M = 1.0  # RoboMME takes its containers out of the scene to show what is under them; robots lift them less
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

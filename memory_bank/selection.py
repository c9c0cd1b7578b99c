"""Turns many nominations into few keyframes: the median frame of each 1-D single-linkage cluster.

Source: MemER's keyframe consolidation, used by PrediMem. Two nominated steps belong to one cluster
when a chain of nominations with gaps of at most `gap_steps` joins them. A step counts as often as
it was nominated, so a frame that the planner insists on wins its cluster.

The clusters are kept as they grow, because a tick must not cost more late in an episode than early.
For that a cluster is sealed once its first nomination is `max_span_steps` old: nominations of
later steps open a new cluster, and the bank drops those of steps up to its last one.
"""

from __future__ import annotations

from bisect import insort
from dataclasses import dataclass, field


@dataclass
class Cluster:
    """Nominated steps, sorted, repeats kept."""

    steps: list[int] = field(default_factory=list)

    @property
    def median(self) -> int:
        """The lower median: always a step that was nominated."""
        return self.steps[(len(self.steps) - 1) // 2]


class NominationClusters:
    """Single-linkage clusters over nominated steps, updated one nomination at a time."""

    def __init__(self, gap_steps: int, max_span_steps: int):
        self._gap = gap_steps
        self._max_span = max_span_steps
        self._open: list[Cluster] = []

    def add(self, step: int) -> None:
        """Count one nomination of `step`."""
        near = [c for c in self._open if c.steps[0] - self._gap <= step <= c.steps[-1] + self._gap]
        if not near:
            self._open.append(Cluster([step]))
            self._open.sort(key=lambda c: c.steps[0])
            return
        first = near[0]
        for other in near[1:]:  # the new step joins clusters that were apart
            first.steps = sorted(first.steps + other.steps)
            self._open.remove(other)
        insort(first.steps, step)

    def seal(self, now: int) -> list[Cluster]:
        """Take out the clusters that are too old to change at control step `now`, oldest first."""
        sealed = []
        while self._open and now - self._open[0].steps[0] >= self._max_span:
            sealed.append(self._open.pop(0))
        return sealed

    def medians(self) -> tuple[int, ...]:
        """One step per open cluster, oldest first."""
        return tuple(c.median for c in self._open)

    def steps(self) -> tuple[tuple[int, ...], ...]:
        """The nominated steps of each open cluster, oldest first, repeats kept."""
        return tuple(tuple(c.steps) for c in self._open)

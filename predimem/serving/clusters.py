"""Why a keyframe is the one it is, and why it moved: how the clusters of nominations changed."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

Nominations = tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class ClusterChange:
    """A cluster of nominations that is new, or has grown.

    step: the control step at which the bank counted them.
    keyframe: the lower median of its nominations, which is the keyframe from then on.
    before: the keyframes that stood for it until then; empty for a new cluster, several where clusters were joined.
    nominations: its nominated steps, sorted, repeats kept.
    """

    step: int
    keyframe: int
    before: tuple[int, ...]
    nominations: tuple[int, ...]

    def plain(self) -> list[Any]:
        """[step, keyframe, before, [[nominated step, how often], ...]]"""
        return [self.step, self.keyframe, self.before, list(Counter(self.nominations).items())]


def median(nominations: tuple[int, ...]) -> int:
    """The lower median of sorted steps, as the memory bank takes it."""
    return nominations[(len(nominations) - 1) // 2]


def cluster_changes(step: int, before: Nominations, after: Nominations) -> list[ClusterChange]:
    """What is different in `after`. Both are as `MemoryBank.nominations` gives them.

    Clusters that cannot change any more stay the same objects, so a long episode costs no more than a short one.
    """
    same = 0
    while same < min(len(before), len(after)) and before[same] is after[same]:
        same += 1
    was, there = before[same:], set(before[same:])
    remain = set(after[same:])
    changes = []
    for cluster in after[same:]:
        if cluster in there:
            continue
        steps = set(cluster)
        parts = [median(old) for old in was if old not in remain and not steps.isdisjoint(old)]
        changes.append(ClusterChange(step, median(cluster), tuple(parts), cluster))
    return changes

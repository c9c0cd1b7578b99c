"""Branch points: the moments at which an episode could have gone on otherwise, and at which only memory decides.

Which drawer has to be opened again follows from what was seen in it. The moment of that decision lasts a few frames of
an episode of a thousand, because the arm soon shows where it is heading. Evenly drawn samples would hardly show it.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

from predimem.core.episodes import Episode, SubtaskSpan


def branch_points(episodes: Iterable[Episode]) -> dict[int, tuple[int, ...]]:
    """The steps of each episode's branch points, by `id(episode)`.

    A branch point is the first step of a subtask in whose place some other episode of the same task and instruction
    has another subtask, after the same one as here. Episodes that go back to an earlier subtask have none.
    """
    episodes = list(episodes)
    nexts: dict[tuple[str, str, int, str], set[str]] = {}
    for episode in episodes:
        for place, (before, after) in _switches(episode):
            nexts.setdefault((episode.task, episode.instruction, place, before.label), set()).add(after.label)
    return {
        id(episode): tuple(
            after.start
            for place, (before, after) in _switches(episode)
            if len(nexts[episode.task, episode.instruction, place, before.label]) > 1
        )
        for episode in episodes
    }


def _switches(episode: Episode) -> Iterable[tuple[int, tuple[SubtaskSpan, SubtaskSpan]]]:
    return () if episode.goes_back else enumerate(pairwise(episode.subtasks))

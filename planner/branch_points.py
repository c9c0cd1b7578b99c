"""Branch points: the moments at which an episode could have gone on otherwise, and at which only memory decides.

Which drawer has to be opened again follows from what was seen in it. The moment of that decision lasts a few frames of
an episode of a thousand, because the arm soon shows where it is heading. Evenly drawn samples would hardly show it.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

from predimem.core.episodes import Episode


def branch_points(episodes: Iterable[Episode]) -> dict[int, tuple[int, ...]]:
    """The steps of each episode's branch points, by `id(episode)`.

    A branch point is the first step of a subtask in whose place some other episode of the same task and instruction
    has another subtask, after the same one as here.
    """
    episodes = list(episodes)
    nexts: dict[tuple[str, str, int, str], set[str]] = {}
    for episode in episodes:
        for place, (before, after) in enumerate(pairwise(episode.subtasks)):
            nexts.setdefault((episode.task, episode.instruction, place, before.label), set()).add(after.label)
    return {
        id(episode): tuple(
            after.start
            for place, (before, after) in enumerate(pairwise(episode.subtasks))
            if len(nexts[episode.task, episode.instruction, place, before.label]) > 1
        )
        for episode in episodes
    }

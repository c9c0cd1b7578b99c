"""Where an episode could have gone on otherwise: the moments that only memory decides.

Which drawer is opened again follows from what was seen in it. That moment is a few frames of an episode of a thousand,
and soon the arm shows where it is heading: drawn evenly, a data set would hardly show it.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

from predimem.core.episodes import Episode


def forks(episodes: Iterable[Episode]) -> dict[int, tuple[int, ...]]:
    """The steps at which each episode's forks begin, by `id(episode)`.

    A subtask is a fork if some other episode of the same task and instruction has another one at the same place of
    its sequence, after the same one.
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

"""Setbacks: the moments after which something has to be done again, such as a grasp that missed or a thing that fell.

They are rare and short. One wrong answer after a drop can lose the episode, because the gripper opens for the next
thing and no longer shows that it was empty. Evenly drawn samples would hardly show these moments.
"""

from __future__ import annotations

from itertools import pairwise

from predimem.core.episodes import Episode

KINDS = frozenset({"missed grasp", "drop", "came out"})


def setbacks(episode: Episode) -> tuple[int, ...]:
    """The steps of an episode's setbacks, in order.

    A setback is the end of an event of the metadata (`events`) whose kind is one of `KINDS`, and the first step of a
    subtask that had been done before and came undone (`span_stages` of the metadata).
    """
    events = (event["end"] for event in episode.metadata.get("events", ()) if event["kind"] in KINDS)
    stages = episode.metadata.get("span_stages", ())
    undone = (
        span.start
        for span, (before, stage) in zip(episode.subtasks[1:], pairwise(stages), strict=False)
        if stage < before
    )
    return tuple(sorted({step for step in (*events, *undone) if step < len(episode)}))

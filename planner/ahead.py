"""Labels of a planner that plans ahead: a subtask together with those that follow it.

Where an episode begins with all that has to be remembered, such a planner turns it into words once, when it names the
first subtask. From then on its text memory says what is next, and it only has to see that a subtask has ended.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fnmatch import fnmatchcase

from predimem.core.episodes import Episode
from predimem.core.subtask_labels import THEN


def planned_ahead(episode: Episode, patterns: Sequence[str]) -> Episode:
    """The same episode, each of whose subtasks that match says those that follow it as well, up to the first that does
    not match. patterns: as in `fnmatch`; without any it is the episode itself.

    Raises ValueError for an episode whose driver named subtasks itself: what it would have planned is not known.
    """
    if not patterns:
        return episode
    if episode.metadata.get("spoken"):
        raise ValueError(
            f"{episode.task} seed {episode.seed}: a planner drove it, which did not plan ahead; "
            "leave dataset.plan_ahead empty, or leave out such episodes"
        )
    spans, later = [], ""
    for span in reversed(episode.subtasks):
        matches = any(fnmatchcase(span.label, pattern) for pattern in patterns)
        label = f"{span.label}{THEN}{later}" if matches and later else span.label
        spans.append(replace(span, label=label))
        later = label if matches else ""
    return replace(episode, subtasks=tuple(reversed(spans)))

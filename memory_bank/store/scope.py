"""A `Scope` in SQL."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from memory_bank.store.records import Scope

_SESSIONS = "JOIN sessions s ON s.id = e.session JOIN robots r ON r.id = s.robot"
EPISODES = f"episodes e {_SESSIONS}"
KEYFRAMES = f"keyframes k JOIN episodes e ON e.id = k.episode {_SESSIONS}"
AT_ONCE = 500  # values of one statement
_CONDITIONS = {
    "robot": "r.name = ?",
    "session": "s.name = ?",
    "task": "e.instruction = ?",
    "episode_id": "e.episode_id = ?",
    "without_episode": "e.episode_id <> ?",
    "before_s": "e.began_s < ?",
    "after_s": "e.began_s >= ?",
}


def where(scope: Scope) -> tuple[str, list[Any]]:
    """A condition on the tables of `KEYFRAMES` and its values; without the keyframes' own part on `EPISODES`, too."""
    given = {name: getattr(scope, name) for name in _CONDITIONS if getattr(scope, name) is not None}
    conditions, values = [_CONDITIONS[name] for name in given], list(given.values())
    if scope.subtask is not None:
        text = scope.subtask.lower().replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
        conditions.append("lower(k.subtask) LIKE ? ESCAPE '\\'")
        values.append(f"%{text}%")
    if scope.nominated is not None:
        conditions.append("k.nominated = ?")
        values.append(int(scope.nominated))
    return " AND ".join(conditions) or "1 = 1", values


def in_parts(values: Iterable[Any]) -> Iterator[tuple[str, list[Any]]]:
    """(marks, values) for `IN (...)`, so many at once as any database takes."""
    rest = list(values)
    for first in range(0, len(rest), AT_ONCE):
        part = rest[first : first + AT_ONCE]
        yield ", ".join("?" * len(part)), part

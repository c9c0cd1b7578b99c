"""What the store keeps of an episode, read back, and the tables that it lies in."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from typing import Literal

VERSION = 2
Outcome = Literal["success", "failure", "ended"]  # the last: nobody said whether it was a success
SCHEMA = """
CREATE TABLE IF NOT EXISTS episodes (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    episode_id TEXT NOT NULL UNIQUE,
    instruction TEXT NOT NULL,
    began_s REAL NOT NULL,
    used_s REAL NOT NULL,
    outcome TEXT
);
CREATE TABLE IF NOT EXISTS plans (
    episode INTEGER NOT NULL REFERENCES episodes (id) ON DELETE CASCADE,
    step INTEGER NOT NULL,
    subtask TEXT,
    keyframe_steps TEXT NOT NULL,
    confidence REAL,
    text TEXT NOT NULL,
    at_s REAL NOT NULL,
    latency_s REAL,
    PRIMARY KEY (episode, step)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS failures (
    episode INTEGER NOT NULL REFERENCES episodes (id) ON DELETE CASCADE,
    step INTEGER NOT NULL,
    error TEXT NOT NULL,
    text TEXT NOT NULL,
    at_s REAL NOT NULL,
    latency_s REAL,
    PRIMARY KEY (episode, step)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS trajectories (
    episode INTEGER NOT NULL REFERENCES episodes (id) ON DELETE CASCADE,
    at_s REAL NOT NULL,
    piece BLOB NOT NULL,
    PRIMARY KEY (episode, at_s)
);
CREATE TABLE IF NOT EXISTS pictures (
    episode INTEGER NOT NULL REFERENCES episodes (id) ON DELETE CASCADE,
    step INTEGER NOT NULL,
    time_s REAL NOT NULL,
    cameras TEXT NOT NULL,
    PRIMARY KEY (episode, step)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS owners (
    episode INTEGER PRIMARY KEY REFERENCES episodes (id) ON DELETE CASCADE,
    owner TEXT NOT NULL
);
"""
_ADDED = (("episodes", "outcome", "TEXT"), ("plans", "latency_s", "REAL"))  # columns that earlier versions lack


@dataclass(frozen=True)
class StoredPlan:
    """An answer of the planner that was used.

    text: the raw answer. at_s: when it was stored, in seconds since 1970. latency_s: how long the planner took; None
    in folders of earlier versions.
    """

    step: int
    subtask: str | None
    keyframe_steps: tuple[int, ...]
    confidence: float | None
    text: str
    at_s: float | None = None
    latency_s: float | None = None


@dataclass(frozen=True)
class StoredFailure:
    """An answer that could not be used, or none at all. text: the raw answer, empty where there was none."""

    step: int
    error: str
    text: str
    at_s: float
    latency_s: float | None


@dataclass(frozen=True)
class StoredEpisode:
    """An episode that is kept on disk.

    key: its number in this store.
    plans: the planner's answers, oldest first.
    image_steps: the control steps with images, sorted.
    outcome: how it ended, None where it was not ended.
    failures: the answers that could not be used, oldest first.
    began_s: when it began, in seconds since 1970.
    """

    key: int
    episode_id: str
    instruction: str
    plans: tuple[StoredPlan, ...] = ()
    image_steps: tuple[int, ...] = ()
    outcome: Outcome | None = None
    failures: tuple[StoredFailure, ...] = ()
    began_s: float | None = None


def migrate(database: sqlite3.Connection) -> None:
    """Give a folder of an earlier version what it lacks. Its episodes stay as they are."""
    for table, column, kind in _ADDED:
        if column not in {row[1] for row in database.execute(f"PRAGMA table_info({table})")}:
            database.execute(f"ALTER TABLE {table} ADD COLUMN {column} {kind}")
    database.execute(f"PRAGMA user_version = {VERSION}")

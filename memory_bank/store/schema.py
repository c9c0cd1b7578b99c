"""The tables of the store, for both databases, and how those of earlier versions become them.

The words in braces are types that the databases name differently (`Database.types`).
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable

from memory_bank.store.database import Database, Link
from memory_bank.store.images import Images
from memory_bank.store.records import StoreError, robot_of

VERSION = 3
_OF_EPISODE = "episode {ref} NOT NULL REFERENCES episodes (id) ON DELETE CASCADE"
_OWNERS = (
    "CREATE TABLE owners (episode {ref} PRIMARY KEY REFERENCES episodes (id) ON DELETE CASCADE, owner TEXT NOT NULL)"
)
_FAILURES = f"""CREATE TABLE failures ({_OF_EPISODE}, step {{ref}} NOT NULL, error TEXT NOT NULL, text TEXT NOT NULL,
    at_s {{real}} NOT NULL, latency_s {{real}}, PRIMARY KEY (episode, step))"""
_TRAJECTORIES = f"""CREATE TABLE trajectories ({_OF_EPISODE}, at_s {{real}} NOT NULL, piece {{bytes}} NOT NULL,
    PRIMARY KEY (episode, at_s))"""
_PLANS = f"""CREATE TABLE plans ({_OF_EPISODE}, step {{ref}} NOT NULL, subtask TEXT, keyframe_steps TEXT NOT NULL,
    confidence {{real}}, text TEXT NOT NULL, at_s {{real}} NOT NULL, latency_s {{real}},
    PRIMARY KEY (episode, step))"""
_EPISODES = """CREATE TABLE episodes (id {key}, episode_id TEXT NOT NULL UNIQUE, instruction TEXT NOT NULL,
    began_s {real} NOT NULL, used_s {real} NOT NULL, outcome TEXT,
    session {ref} REFERENCES sessions (id) ON DELETE CASCADE, image_bytes {ref} NOT NULL DEFAULT 0)"""
_SINCE_3 = (
    "CREATE TABLE settings (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
    "CREATE TABLE robots (id {key}, name TEXT NOT NULL UNIQUE)",
    """CREATE TABLE sessions (id {key}, robot {ref} NOT NULL REFERENCES robots (id) ON DELETE CASCADE,
        name TEXT NOT NULL, began_s {real} NOT NULL, UNIQUE (robot, name))""",
)
_ABOUT_EPISODES = (
    f"""CREATE TABLE keyframes (id {{key}}, {_OF_EPISODE}, step {{ref}} NOT NULL, time_s {{real}} NOT NULL,
        at_s {{real}} NOT NULL, cameras TEXT NOT NULL, subtask TEXT, nominated {{ref}} NOT NULL,
        UNIQUE (episode, step))""",
    f"""CREATE TABLE images ({_OF_EPISODE}, step {{ref}} NOT NULL, camera {{ref}} NOT NULL, png {{bytes}} NOT NULL,
        PRIMARY KEY (episode, step, camera))""",
    "CREATE TABLE models (id {key}, name TEXT NOT NULL UNIQUE, dim {ref} NOT NULL)",
    """CREATE TABLE embeddings (id {key}, keyframe {ref} NOT NULL REFERENCES keyframes (id) ON DELETE CASCADE,
        model {ref} NOT NULL REFERENCES models (id), vector {vector} NOT NULL, UNIQUE (keyframe, model))""",
    """CREATE TABLE notes (id {key}, robot {ref} NOT NULL REFERENCES robots (id) ON DELETE CASCADE,
        session {ref} REFERENCES sessions (id) ON DELETE CASCADE,
        episode {ref} REFERENCES episodes (id) ON DELETE CASCADE,
        at_s {real} NOT NULL, author TEXT NOT NULL, text TEXT NOT NULL)""",
    "CREATE TABLE trash (episode {ref} PRIMARY KEY, due_s {real} NOT NULL)",
    "CREATE INDEX episodes_of_session ON episodes (session)",
    "CREATE INDEX episodes_by_use ON episodes (used_s)",
    "CREATE INDEX embeddings_of_model ON embeddings (model, id)",
    "CREATE INDEX notes_of_robot ON notes (robot)",
    "CREATE INDEX notes_of_session ON notes (session)",
    "CREATE INDEX notes_of_episode ON notes (episode)",
)


def prepare(database: Database, images: Images) -> None:
    """Make the tables, or those of an earlier version into this one's; in one transaction, so that a kill leaves
    either. Raises StoreError where a later version made them."""
    with database.reading() as read:
        version = database.version(read)
    _check(version)
    if version == VERSION:
        return
    with database.writing() as write:
        database.alone(write)
        version = database.version(write)  # another process may have been faster
        _check(version)
        if version == 0:
            _make(database, write, *_SINCE_3, _EPISODES, _PLANS, _FAILURES, _TRAJECTORIES, _OWNERS, *_ABOUT_EPISODES)
            _first_settings(write)
        else:
            for before in range(version, VERSION):
                _MIGRATIONS[before](database, write, images)
        database.set_version(write, VERSION)


def _check(version: int) -> None:
    if version > VERSION:
        raise StoreError(
            f"the store was written by another version ({version}); this one reads up to {VERSION}: "
            "update predimem, or choose another place"
        )


def _make(database: Database, write: Link, *statements: str) -> None:
    for statement in statements:
        write(statement.format_map(database.types))


def _first_settings(write: Link) -> None:
    write.many("INSERT INTO settings VALUES (?, ?)", [("store", secrets.token_hex(8)), ("deletions", "0")])


def _from_1(database: Database, write: Link, images: Images) -> None:
    """Outcomes, latencies, failures and trajectories were added."""
    del images
    for table, column, kind in (("episodes", "outcome", "TEXT"), ("plans", "latency_s", "REAL")):
        if column not in {row[1] for row in write(f"PRAGMA table_info({table})")}:
            write(f"ALTER TABLE {table} ADD COLUMN {column} {kind}")
    for name, statement in (("failures", _FAILURES), ("trajectories", _TRAJECTORIES)):
        if not write("SELECT 1 FROM sqlite_master WHERE name = ?", (name,)):
            _make(database, write, statement)


def _from_2(database: Database, write: Link, images: Images) -> None:
    """Episodes have a session and a robot, pictures are keyframes."""
    _make(database, write, *_SINCE_3)
    _first_settings(write)
    write("ALTER TABLE episodes ADD COLUMN session INTEGER REFERENCES sessions (id) ON DELETE CASCADE")
    write("ALTER TABLE episodes ADD COLUMN image_bytes INTEGER NOT NULL DEFAULT 0")
    _make(database, write, *_ABOUT_EPISODES)
    for key, episode_id, began_s in write("SELECT id, episode_id, began_s FROM episodes ORDER BY id"):
        robot = robot_of(episode_id)
        write("INSERT INTO robots (name) VALUES (?) ON CONFLICT (name) DO NOTHING", (robot,))
        write(
            "INSERT INTO sessions (robot, name, began_s) SELECT id, ?, ? FROM robots WHERE name = ?",
            (episode_id, began_s, robot),
        )
        write("UPDATE episodes SET session = (SELECT max(id) FROM sessions) WHERE id = ?", (key,))
        _keyframes_of_2(write, key, began_s, images)
    write("DROP TABLE pictures")


def _keyframes_of_2(write: Link, key: int, began_s: float, images: Images) -> None:
    plans = write("SELECT step, subtask, keyframe_steps, at_s FROM plans WHERE episode = ? ORDER BY step", (key,))
    nominated = {step for _, _, steps, _ in plans for step in json.loads(steps)}
    pictures = write("SELECT step, time_s, cameras FROM pictures WHERE episode = ? ORDER BY step", (key,))
    size = 0
    for step, time_s, cameras in pictures:
        # A picture was stored with the first plan from its step on, or with a later one that nominated it.
        later = [(subtask, at_s) for planned, subtask, _, at_s in plans if planned >= step]
        subtask, at_s = later[0] if later else (None, began_s + time_s)
        write(
            "INSERT INTO keyframes (episode, step, time_s, at_s, cameras, subtask, nominated) "
            "VALUES (?, ?, ?, ?, ?, ?, ?)",
            (key, step, time_s, at_s, cameras, subtask, int(step in nominated)),
        )
        size += sum(images.size(key, step, camera) for camera in range(len(json.loads(cameras))))
    write("UPDATE episodes SET image_bytes = ? WHERE id = ?", (size, key))


_MIGRATIONS: dict[int, Callable[[Database, Link, Images], None]] = {1: _from_1, 2: _from_2}

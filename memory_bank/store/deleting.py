"""How things leave the store: by a retention, by a person's wish, or because an episode begins anew.

The rows go first, in one transaction that also writes the episode into `trash`; then its files. A crash in between is
mended by the next one who opens the store.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable
from threading import Lock

from memory_bank.store.database import Database, Link
from memory_bank.store.images import Images
from memory_bank.store.records import Removed, Retention, StoreFault
from memory_bank.store.scope import in_parts

DAY_S = 86400.0
PLAYED_S = 3600.0  # since an episode was used, after which its server has crashed if it has not left it
GIB = 1 << 30


class Deleter:
    """Any thread may use it."""

    def __init__(self, database: Database, images: Images, retention: Retention):
        self._database, self._images, self._retention = database, images, retention
        self._lock = Lock()
        self._emptied: list[int] = []  # episodes whose files are gone, and that can leave the trash

    def delete(self, write: Link, keys: Collection[int]) -> Removed:
        """The rows of these episodes, and those of sessions and robots that have nothing else; then
        `remove_files`, after the transaction."""
        if not keys:
            return Removed()
        keyframes = size = 0
        for marks, part in in_parts(keys):
            keyframes += write(f"SELECT count(*) FROM keyframes WHERE episode IN ({marks})", part)[0][0]
            size += int(write(f"SELECT coalesce(sum(image_bytes), 0) FROM episodes WHERE id IN ({marks})", part)[0][0])
            sessions = write(f"SELECT DISTINCT session FROM episodes WHERE id IN ({marks})", part)
            write(f"DELETE FROM episodes WHERE id IN ({marks})", part)
            _delete_empty(write, [session for (session,) in sessions])
        due_s = time.time()
        write.many("INSERT INTO trash VALUES (?, ?) ON CONFLICT DO NOTHING", [(key, due_s) for key in keys])
        write("UPDATE settings SET value = CAST(CAST(value AS INTEGER) + 1 AS TEXT) WHERE name = 'deletions'")
        with self._lock:
            emptied, self._emptied = self._emptied, []
        _leave_trash(write, emptied)
        return Removed(len(keys), keyframes, size, tuple(keys))

    def delete_name(self, write: Link, robot: int, session: int | None) -> None:
        """A robot, or a session of it, whose episodes are gone, with its notes."""
        if session is None:
            write("DELETE FROM robots WHERE id = ?", (robot,))
        else:
            write("DELETE FROM sessions WHERE id = ?", (session,))
            _delete_empty_robots(write, [robot])

    def apply_retention(self, write: Link, now_s: float, besides: int | None = None) -> Removed:
        """Delete what is kept no longer; never the episode `besides`, and none that is being played: one that belongs
        to a server and was used within `PLAYED_S`."""
        limits = self._retention
        if not limits.limited:
            return Removed()
        rows = write(
            "SELECT e.id, e.used_s, row_number() OVER newest, row_number() OVER of_robot, "
            "sum(e.image_bytes) OVER newest, o.owner IS NOT NULL AND e.used_s > ? "
            "FROM episodes e JOIN sessions s ON s.id = e.session LEFT JOIN owners o ON o.episode = e.id "
            "WINDOW newest AS (ORDER BY e.used_s DESC, e.id DESC), "
            "of_robot AS (PARTITION BY s.robot ORDER BY e.used_s DESC, e.id DESC)",
            (now_s - PLAYED_S,),
        )
        doomed = [
            key
            for key, used_s, place, place_of_robot, size, played in rows
            if key != besides
            and not played
            and (
                (limits.days is not None and used_s < now_s - limits.days * DAY_S)
                or (limits.episodes is not None and place > limits.episodes)
                or (limits.episodes_per_robot is not None and place_of_robot > limits.episodes_per_robot)
                or (limits.gib is not None and size > limits.gib * GIB)
            )
        ]
        return self.delete(write, doomed)

    def remove_files(self, *removed: Removed, strict: bool = False) -> None:
        """The files of what was deleted, once the transaction is over. Raises StoreFault, where that is strict, if some
        could not be removed."""
        keys = [key for one in removed for key in one.keys]
        gone = [key for key in keys if self._images.remove(key)]
        with self._lock:
            self._emptied += gone
        if strict and (stuck := [str(key) for key in keys if key not in gone]):
            raise StoreFault(
                f"the images of {len(stuck)} episodes could not be removed (folders {', '.join(stuck[:5])} of "
                "pictures/): see who owns them; they are tried again when the store is opened"
            )

    def sweep(self, now_s: float) -> None:
        """Remove the files that a crash left behind. Raises StoreFault."""
        with self._database.reading() as read:
            due = [key for (key,) in read("SELECT episode FROM trash WHERE due_s <= ?", (now_s,))]
        gone = [key for key in due if self._images.remove(key)]
        if gone:
            with self._database.writing() as write:
                _leave_trash(write, gone)


def _leave_trash(write: Link, keys: Iterable[int]) -> None:
    for marks, part in in_parts(keys):
        write(f"DELETE FROM trash WHERE episode IN ({marks})", part)


def _delete_empty(write: Link, sessions: Iterable[int]) -> None:
    for marks, part in in_parts(sessions):
        robots = write(f"SELECT DISTINCT robot FROM sessions WHERE id IN ({marks})", part)
        write(
            f"DELETE FROM sessions WHERE id IN ({marks}) "
            "AND NOT EXISTS (SELECT 1 FROM episodes e WHERE e.session = sessions.id) "
            "AND NOT EXISTS (SELECT 1 FROM notes n WHERE n.session = sessions.id)",
            part,
        )
        _delete_empty_robots(write, [robot for (robot,) in robots])


def _delete_empty_robots(write: Link, robots: Iterable[int]) -> None:
    for marks, part in in_parts(robots):
        write(
            f"DELETE FROM robots WHERE id IN ({marks}) "
            "AND NOT EXISTS (SELECT 1 FROM sessions s WHERE s.robot = robots.id) "
            "AND NOT EXISTS (SELECT 1 FROM notes n WHERE n.robot = robots.id)",
            part,
        )

"""The store's database in a folder: SQLite, in WAL mode unless several machines share the folder."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import Any, Literal

import numpy as np

from memory_bank.store.database import Database, Link, Row

FILE = "episodes.db"
WAIT_S = 10.0  # for another process's transaction
Journal = Literal["wal", "rollback"]


class SqliteLink(Link):
    def __init__(self, connection: sqlite3.Connection):
        self._connection = connection

    def __call__(self, sql: str, values: Sequence[Any] = ()) -> list[Row]:
        return self._connection.execute(sql, values).fetchall()

    def many(self, sql: str, rows: Sequence[Sequence[Any]]) -> None:
        self._connection.executemany(sql, rows)

    def close(self) -> None:
        self._connection.close()


TYPES = {
    "key": "INTEGER PRIMARY KEY AUTOINCREMENT",
    "ref": "INTEGER",
    "real": "REAL",
    "bytes": "BLOB",
    "vector": "BLOB",
}


class SqliteDatabase(Database):
    """sync: wait for the disk. journal: None leaves the journal as it is, and means WAL for a new folder."""

    for_update = ""
    errors = (sqlite3.Error,)

    def __init__(self, folder: Path, sync: bool, journal: Journal | None):
        super().__init__()
        self.types = TYPES
        self._file, self._sync, self._journal = folder / FILE, sync, journal
        self._one_writer = Lock()  # threads wait here rather than ask again and again for SQLite's lock

    def connect(self) -> SqliteLink:
        fresh = not self._file.exists()
        connection = sqlite3.connect(self._file, timeout=WAIT_S, isolation_level=None, check_same_thread=False)
        if self._journal is not None or fresh:
            _set_journal(connection, "DELETE" if self._journal == "rollback" else "WAL")
        connection.execute(f"PRAGMA synchronous = {'FULL' if self._sync else 'NORMAL'}")
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("PRAGMA secure_delete = ON")  # what is deleted is overwritten
        return SqliteLink(connection)

    def pack(self, vector: np.ndarray) -> Any:
        return vector.astype("<f2").tobytes()

    def unpack(self, value: Any) -> np.ndarray:
        return np.frombuffer(value, "<f2")

    def begin(self, link: Link, write: bool) -> None:
        link("BEGIN IMMEDIATE" if write else "BEGIN")

    def version(self, link: Link) -> int:
        version = link("PRAGMA user_version")[0][0]
        if version == 0 and link("SELECT 1 FROM sqlite_master WHERE name = 'pictures'"):
            return 1  # an early server was killed before it wrote its version
        return version

    def set_version(self, link: Link, version: int) -> None:
        link(f"PRAGMA user_version = {version}")

    @contextmanager
    def writing(self) -> Iterator[Link]:
        with self._one_writer, super().writing() as link:
            yield link


def _set_journal(connection: sqlite3.Connection, mode: str) -> None:
    """Wait for other processes here: where SQLite would have to upgrade its lock, it gives up at once."""
    deadline = time.monotonic() + WAIT_S
    while True:
        try:
            connection.execute(f"PRAGMA journal_mode = {mode}")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                connection.close()
                raise
        time.sleep(0.01)

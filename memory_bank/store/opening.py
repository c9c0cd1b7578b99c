"""Opens a store: a folder, or the address of a PostgreSQL database."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from urllib.parse import unquote, urlsplit, urlunsplit

from memory_bank.store.images import FolderImages, TableImages
from memory_bank.store.records import KEEP_ALL, Retention, StoreError, StoreFault
from memory_bank.store.schema import prepare
from memory_bank.store.search import FileSearcher
from memory_bank.store.sqlite import FILE, Journal, SqliteDatabase
from memory_bank.store.store import MemoryStore

ADDRESSES = ("postgresql://", "postgres://")


def open_store(
    place: str | Path,
    retention: Retention = KEEP_ALL,
    sync: bool = True,
    journal: Journal | None = None,
    must_exist: bool = False,
) -> MemoryStore:
    """The store in a folder, which is made where it is not there, or in a database (`postgresql://...`).

    What an earlier version wrote is brought up to date, and what a crash left behind is removed. sync: wait for the
    disk, so that what was acknowledged survives a power cut, too. journal: see `SqliteDatabase`; a database that
    several machines write in one folder needs "rollback". must_exist: refuse an empty place.

    Raises StoreError for a place that cannot be used.
    """
    if str(place).startswith(ADDRESSES):
        from memory_bank.store.postgres import PostgresDatabase, SqlSearcher

        database = PostgresDatabase(str(place))
        table = TableImages(database)
        store = MemoryStore(database, table, SqlSearcher(database), retention)
        _prepare(store, str(place).rpartition("@")[2], "see whether the database runs and lets you in")
        return store
    folder = Path(place)
    if must_exist and not (folder / FILE).exists():
        raise StoreError(f"{folder} holds no memory store ({FILE}): name the --state-dir of `predimem serve`")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(f"the state folder {place} cannot be used: {error}; choose another --state-dir") from error
    from PIL import Image

    Image.preinit()  # takes long on a cold disk, and the first who needs it is a robot that waits
    database = SqliteDatabase(folder, sync, journal)
    searcher = FileSearcher(folder, database)
    store = MemoryStore(database, FolderImages(folder, sync), searcher, retention)
    _prepare(store, f"the state folder {place}", "choose another --state-dir")
    return store


def _prepare(store: MemoryStore, what: str, remedy: str) -> None:
    try:
        prepare(store.database, store.images)
        store.sweep()
    except (StoreFault, sqlite3.Error) as error:
        store.close()
        raise StoreError(f"{what} cannot be used: {error}; {remedy}") from error
    except BaseException:
        store.close()
        raise


def is_address(place: str | Path) -> bool:
    return str(place).startswith(ADDRESSES)


def without_password(place: str) -> tuple[str, dict[str, str]]:
    """A place as others may see it, and the variables with which libpq finds the password that it had."""
    if not is_address(place):
        return place, {}
    parts = urlsplit(place)
    if parts.password is None:
        return place, {}
    host = parts.netloc.rpartition("@")[2]
    shown = urlunsplit(parts._replace(netloc=f"{parts.username}@{host}" if parts.username else host))
    return shown, {"PGPASSWORD": unquote(parts.password)}

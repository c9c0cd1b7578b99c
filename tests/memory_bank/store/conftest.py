"""The places that a store can be opened at: a folder, and a database of a PostgreSQL that the tests start."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from memory_bank.store import MemoryStore, Retention, open_store
from tests.memory_bank.store.postgres import running_server

_NUMBERS = itertools.count()
Open = Callable[..., MemoryStore]


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    with running_server() as address:
        yield address


@pytest.fixture
def database(postgres: str) -> str:
    """The address of an empty database."""
    import psycopg

    name = f"store_{next(_NUMBERS)}"
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    return postgres.replace("/postgres?", f"/{name}?")


@pytest.fixture(params=["folder", pytest.param("postgres", marks=pytest.mark.needs("postgres"))])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return str(tmp_path / "store") if request.param == "folder" else request.getfixturevalue("database")


@pytest.fixture
def opened(place: str) -> Iterator[Open]:
    """Opens the store of this test, again and again; all are closed at the end."""
    stores: list[MemoryStore] = []

    def open_again(**limits: float) -> MemoryStore:
        stores.append(open_store(place, Retention(**limits), sync=False))
        return stores[-1]

    yield open_again
    for store in stores:
        store.close()

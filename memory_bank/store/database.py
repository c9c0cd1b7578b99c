"""The two databases behind one small interface: SQL with `?` for values, in transactions.

The statements of the store are written once. What differs (types, locks, vectors) is what `Database` names.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from memory_bank.store.records import StoreFault

Row = tuple[Any, ...]


def one_line(error: Exception) -> str:
    return " ".join(str(error).split())


class Link(ABC):
    """A connection within a transaction."""

    @abstractmethod
    def __call__(self, sql: str, values: Sequence[Any] = ()) -> list[Row]:
        """The rows that a statement gives, none where it gives none."""

    @abstractmethod
    def many(self, sql: str, rows: Sequence[Sequence[Any]]) -> None:
        """The statement once for each row of values."""

    @abstractmethod
    def close(self) -> None: ...


class Database(ABC):
    """Any thread may use it. Each transaction has a connection of its own while it lasts.

    types: what the words in braces of the schema stand for.
    for_update: is appended to a SELECT whose rows the transaction then relies on.
    """

    types: Mapping[str, str]
    for_update: str
    errors: tuple[type[Exception], ...]

    def __init__(self) -> None:
        self._idle: list[Link] = []
        self._guard = threading.Lock()
        self._closed = False

    @abstractmethod
    def connect(self) -> Link: ...

    @abstractmethod
    def pack(self, vector: np.ndarray) -> Any:
        """A float16 vector as a value of a statement."""

    @abstractmethod
    def unpack(self, value: Any) -> np.ndarray:
        """float16 [D] of what a statement gave."""

    @abstractmethod
    def begin(self, link: Link, write: bool) -> None: ...

    @abstractmethod
    def version(self, link: Link) -> int:
        """That of the schema; 0 where there is none yet."""

    @abstractmethod
    def set_version(self, link: Link, version: int) -> None: ...

    def alone(self, link: Link) -> None:
        """Waits until no other transaction that called this is under way."""
        del link

    @contextmanager
    def reading(self) -> Iterator[Link]:
        """A transaction that sees the store as it is at one moment. Raises StoreFault."""
        with self._transaction(write=False) as link:
            yield link

    @contextmanager
    def writing(self) -> Iterator[Link]:
        """A transaction, which an exception undoes. Raises StoreFault."""
        with self._transaction(write=True) as link:
            yield link

    def close(self) -> None:
        """Transactions under way are finished."""
        with self._guard:
            self._closed = True
            idle, self._idle = self._idle, []
        for link in idle:
            link.close()

    @contextmanager
    def _transaction(self, write: bool) -> Iterator[Link]:
        try:
            link = self._take()
            try:
                self.begin(link, write)
                yield link
                link("COMMIT")
            except BaseException:
                self._undo(link)
                raise
            self._give_back(link)
        except self.errors as error:
            raise StoreFault(f"the memory store failed: {one_line(error)}") from error

    def _take(self) -> Link:
        with self._guard:
            if self._closed:
                raise StoreFault("the memory store is closed")
            if self._idle:
                return self._idle.pop()
        return self.connect()

    def _give_back(self, link: Link) -> None:
        with self._guard:
            if not self._closed:
                self._idle.append(link)
                return
        link.close()

    def _undo(self, link: Link) -> None:
        """A connection that cannot even do this is of no use any more, and the idle ones are not, either."""
        try:
            link("ROLLBACK")
        except self.errors:
            with self._guard:
                lost, self._idle = [link, *self._idle], []
            for one in lost:
                one.close()
        else:
            self._give_back(link)

"""The embeddings of one model as a file that is mapped into memory: a copy of what the database has, in its order.

Three files lie side by side: `vectors.f2` (float16 [n, D]), `rows.i8` (int64 [n, 3]: embedding, keyframe, episode) and
`head.json`, which is replaced last and says how many rows count. What stands behind them was cut short by a crash and
is overwritten. Rows whose episode was deleted become zeros.
"""

from __future__ import annotations

import fcntl
import json
import os
import secrets
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np

from memory_bank.store.database import Database, Link
from predimem.core.files import write_json

FORMAT = 1
AT_ONCE = 20_000  # rows of one transaction
UNSORTED_ROWS, UNSORTED_SHARE = 50_000, 0.2  # that may stand behind the rows whose order by episode is known
GONE = 0  # stands for the episode of a row that was deleted; the database counts from 1


@dataclass(frozen=True)
class Head:
    """store: which database it is of. last: the newest embedding. deletions: how many had been made. made: tells one
    making of the files from the next."""

    store: str
    dim: int
    made: str
    rows: int = 0
    last: int = 0
    deletions: int = 0
    format: int = FORMAT

    def begins(self, later: Head) -> bool:
        """Whether the rows of `later` begin with these."""
        return (self.store, self.dim, self.made) == (later.store, later.dim, later.made) and self.rows <= later.rows


class VectorView:
    """What was there at one moment; it never changes, except that rows become zeros when they are deleted.

    vectors: float16 [n, D]. keyframes, episodes: int64 [n].
    """

    def __init__(self, head: Head, vectors: np.ndarray, rows: np.ndarray, before: VectorView | None = None):
        self.head, self.vectors = head, vectors
        self.embeddings, self.keyframes, self.episodes = rows[:, 0], rows[:, 1], rows[:, 2]
        self._order = before._order if before is not None and before.head.begins(head) else None

    def __len__(self) -> int:
        return len(self.vectors)

    def alive(self, rows: np.ndarray | None = None) -> np.ndarray:
        """bool [n]: which rows, all or those that are named, were not deleted."""
        return np.asarray((self.episodes if rows is None else self.episodes[rows]) != GONE)

    def rows_of(self, episodes: np.ndarray) -> np.ndarray:
        """The rows of these episodes, ascending. Those that were deleted meanwhile may be among them."""
        if self._order is None or len(self) - len(self._order[0]) > max(UNSORTED_ROWS, UNSORTED_SHARE * len(self)):
            places = np.argsort(self.episodes, kind="stable")
            self._order = places, np.asarray(self.episodes[places])
        places, ordered = self._order
        first = np.searchsorted(ordered, episodes, "left")
        counts = np.searchsorted(ordered, episodes, "right") - first
        ends = np.cumsum(counts)
        sorted_part = places[np.arange(counts.sum()) + np.repeat(first - (ends - counts), counts)]
        tail = len(places) + np.flatnonzero(np.isin(self.episodes[len(places) :], episodes))
        return np.concatenate([np.sort(sorted_part), tail])


class Vectors:
    """Any thread may use it, and several processes may use the folder."""

    def __init__(self, folder: Path, database: Database, model: int, dim: int):
        self._folder, self._database = folder, database
        self._model, self._dim = model, dim
        self._lock = threading.Lock()
        self._view: VectorView | None = None
        self._seen: tuple[int, int, str] | None = None  # what the view was made of

    def current(self, afresh: bool = False) -> VectorView:
        """All embeddings that the database has now. afresh: do not trust the files."""
        with self._lock:
            with self._database.reading() as read:
                now = self._now(read)
            if self._view is None or afresh or self._seen != now:
                self._folder.mkdir(parents=True, exist_ok=True)
                with self._locked():
                    head, self._seen = self._update(afresh)
                self._view = self._map(head)
            return self._view

    def _now(self, read: Link) -> tuple[int, int, str]:
        last = read("SELECT coalesce(max(id), 0) FROM embeddings WHERE model = ?", (self._model,))[0][0]
        settings = dict(read("SELECT name, value FROM settings"))
        return last, int(settings["deletions"]), settings["store"]

    def _update(self, afresh: bool) -> tuple[Head, tuple[int, int, str]]:
        with self._database.reading() as read:
            now = self._now(read)
            head = None if afresh else self._trusted(read, now)
        _, deletions, store = now
        if head is None:
            head = Head(store, self._dim, secrets.token_hex(8), deletions=deletions)
            for name in ("head.json", "vectors.f2", "rows.i8"):
                (self._folder / name).unlink(missing_ok=True)  # others may have the old ones mapped
        if head.deletions != deletions:
            self._forget(head)
        return self._append(replace(head, deletions=deletions), head), now

    def _trusted(self, read: Link, now: tuple[int, int, str]) -> Head | None:
        """The head on the disk; None where it is not about this database as it is now, such as after an older copy of
        the database was put in place."""
        try:
            head = Head(**json.loads((self._folder / "head.json").read_text()))
            sizes = [os.path.getsize(self._folder / name) for name in ("vectors.f2", "rows.i8")] if head.rows else None
        except (OSError, ValueError, TypeError):
            return None
        _, deletions, store = now
        if (head.format, head.store, head.dim) != (FORMAT, store, self._dim):
            return None
        if sizes is None:
            return head
        if sizes[0] < head.rows * self._dim * 2 or sizes[1] < head.rows * 24:
            return None
        row = np.fromfile(self._folder / "rows.i8", "<i8", 3, offset=(head.rows - 1) * 24)
        known = read("SELECT keyframe FROM embeddings WHERE id = ? AND model = ?", (head.last, self._model))
        same = known[0][0] == row[1] if known else deletions > head.deletions
        return head if row[0] == head.last and same else None

    def _append(self, head: Head, before: Head) -> Head:
        rows, last = head.rows, head.last
        while True:
            with self._database.reading() as read:
                new = read(
                    "SELECT v.id, v.keyframe, k.episode, v.vector FROM embeddings v JOIN keyframes k "
                    f"ON k.id = v.keyframe WHERE v.model = ? AND v.id > ? ORDER BY v.id LIMIT {AT_ONCE}",
                    (self._model, last),
                )
            if not new:
                break
            vectors = np.stack([self._database.unpack(row[3]) for row in new]).astype("<f2")
            self._write("vectors.f2", rows * self._dim * 2, vectors.tobytes())
            self._write("rows.i8", rows * 24, np.array([row[:3] for row in new], "<i8").tobytes())
            rows, last = rows + len(new), new[-1][0]
        head = replace(head, rows=rows, last=last)
        if head != before or not (self._folder / "head.json").exists():
            write_json(self._folder / "head.json", asdict(head))
        return head

    def _write(self, name: str, place: int, data: bytes) -> None:
        path = self._folder / name
        with open(path, "r+b" if path.exists() else "w+b") as file:
            file.seek(place)
            file.write(data)
            file.flush()
            os.fsync(file.fileno())

    def _forget(self, head: Head) -> None:
        """Zeros in place of what was deleted."""
        if not head.rows:
            return
        view = self._map(head, "r+")
        with self._database.reading() as read:
            there = np.array([key for (key,) in read("SELECT id FROM episodes")], np.int64)
        known = np.zeros(int(max(view.episodes.max(), there.max(initial=0))) + 1, bool)
        known[there] = True
        gone = np.flatnonzero(~known[view.episodes] & (view.episodes != GONE))
        view.vectors[gone] = 0
        view.episodes[gone] = GONE
        for mapped in (view.vectors, view.episodes.base):
            if isinstance(mapped, np.memmap):
                mapped.flush()

    def _map(self, head: Head, mode: str = "r") -> VectorView:
        if not head.rows:
            return VectorView(head, np.zeros((0, self._dim), np.float16), np.zeros((0, 3), np.int64))
        vectors = np.memmap(self._folder / "vectors.f2", "<f2", mode, shape=(head.rows, self._dim))  # type: ignore[call-overload]
        rows = np.memmap(self._folder / "rows.i8", "<i8", mode, shape=(head.rows, 3))  # type: ignore[call-overload]
        return VectorView(head, vectors, rows, self._view)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Against other processes."""
        with open(self._folder / "lock", "w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

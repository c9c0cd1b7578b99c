"""Nearest keyframes: by an exact scan of memory-mapped embeddings, above `EXACT_ROWS` by an approximate index.

Both are caches beside the database, which alone is true. Whatever is missing, cut short or of another database is made
afresh from it, so a crash at any moment costs time and nothing else.
"""

from __future__ import annotations

import logging
import threading
from abc import ABC, abstractmethod
from pathlib import Path

import numpy as np

from memory_bank.store.approximate import ApproximateIndex, faiss_is_there
from memory_bank.store.database import Database
from memory_bank.store.exact import best
from memory_bank.store.records import EVERYTHING, Scope
from memory_bank.store.scope import EPISODES, KEYFRAMES, where
from memory_bank.store.vectors import Vectors, VectorView

log = logging.getLogger(__name__)
EXACT_ROWS = 100_000  # an exact scan of more takes longer than a robot likes to wait
TAIL_SHARE = 0.2  # so much may have come since the approximate index was made; it is scanned exactly

Found = list[tuple[int, float]]  # (keyframe, similarity), the most similar first


class Searcher(ABC):
    """What `MemoryStore.search` asks. Any thread may use it."""

    @abstractmethod
    def search(self, query: np.ndarray, k: int, model: int, scope: Scope) -> Found:
        """query: float32 [D] of length 1. model: its key."""

    @abstractmethod
    def build(self, model: int, dim: int) -> str:
        """Make the approximate index of a model anew; says what was done."""

    @abstractmethod
    def forget(self) -> None:
        """Something was deleted: after this its embeddings are nowhere."""

    @abstractmethod
    def close(self) -> None: ...


class FileSearcher(Searcher):
    """For the database in a folder: `index/<model>/` beside it.

    in_background: where the approximate index is missing or old, a thread makes it while searches scan exactly.
    """

    def __init__(self, folder: Path, database: Database, in_background: bool = True, exact_rows: int = EXACT_ROWS):
        self._folder, self._database = folder / "index", database
        self._in_background, self._exact_rows = in_background, exact_rows
        self._lock = threading.Lock()
        self._models: dict[int, tuple[Vectors, ApproximateIndex]] = {}
        self._builder: threading.Thread | None = None
        self._told = self._closed = False

    def search(self, query: np.ndarray, k: int, model: int, scope: Scope) -> Found:
        vectors, approximate = self._of(model, len(query))
        view = vectors.current()
        rows = self._rows(view, scope)
        count = len(view) if rows is None else len(rows)
        if count <= self._exact_rows:
            return best(view, rows, query, k)
        covered = approximate.rows if approximate.is_of(view) else 0
        if len(view) - covered > max(self._exact_rows, TAIL_SHARE * len(view)):
            self._build_beside(model, len(query))
        if not covered:
            return best(view, rows, query, k)
        old = None if rows is None else rows[rows < covered]
        new = np.arange(covered, len(view)) if rows is None else rows[rows >= covered]
        candidates = approximate.candidates(query, k, old)
        return best(view, np.concatenate([candidates, new]), query, k)

    def build(self, model: int, dim: int) -> str:
        vectors, approximate = self._of(model, dim)
        view = vectors.current(afresh=True)
        if len(view) <= self._exact_rows:
            approximate.remove()
            return f"{len(view)} embeddings are searched exactly, which needs no index"
        if not faiss_is_there():
            return f"{len(view)} embeddings, searched exactly: an index needs faiss: pip install 'predimem[index]'"
        seconds = approximate.build(view)
        if vectors.current().head.deletions != view.head.deletions:
            approximate.remove()
            return "something was deleted meanwhile, and the index with it; make it again"
        return f"{len(view)} embeddings indexed in {seconds:.0f} s"

    def forget(self) -> None:
        with self._lock:
            known = list(self._models)
        for folder in self._folder.glob("*/"):
            model = int(folder.name) if folder.name.isdecimal() else -1
            if model not in known and (dim := self._dim(model)) is not None:
                self._of(model, dim)
        with self._lock:
            models = list(self._models.values())
        for vectors, approximate in models:
            vectors.current()
            approximate.remove()

    def close(self) -> None:
        """An index that is being made is given up: it has its name only when it is whole."""
        self._closed = True

    def _dim(self, model: int) -> int | None:
        with self._database.reading() as read:
            rows = read("SELECT dim FROM models WHERE id = ?", (model,))
        return rows[0][0] if rows else None

    def _of(self, model: int, dim: int) -> tuple[Vectors, ApproximateIndex]:
        with self._lock:
            if model not in self._models:
                folder = self._folder / str(model)
                self._models[model] = Vectors(folder, self._database, model, dim), ApproximateIndex(folder)
            return self._models[model]

    def _rows(self, view: VectorView, scope: Scope) -> np.ndarray | None:
        """The places in the view of what the scope says, ascending; None where that is all."""
        if scope == EVERYTHING:
            return None
        condition, values = where(scope)
        if scope.subtask is not None or scope.nominated is not None:
            with self._database.reading() as read:
                found = read(f"SELECT k.id FROM {KEYFRAMES} WHERE {condition}", values)
            return np.flatnonzero(np.isin(view.keyframes, np.array([id_ for (id_,) in found], np.int64)))
        with self._database.reading() as read:
            found = read(f"SELECT e.id FROM {EPISODES} WHERE {condition}", values)
        return view.rows_of(np.array([key for (key,) in found], np.int64))

    def _build_beside(self, model: int, dim: int) -> None:
        if not faiss_is_there():
            if not self._told:
                self._told = True
                log.warning("searches are slow without an index, which needs faiss: pip install 'predimem[index]'")
            return
        if not self._in_background:
            return
        with self._lock:
            if self._builder is not None and self._builder.is_alive():
                return
            self._builder = threading.Thread(target=self._build, args=(model, dim), name="memory-index", daemon=True)
            self._builder.start()

    def _build(self, model: int, dim: int) -> None:
        try:
            log.info("memory index: %s", self.build(model, dim))
        except Exception:
            if self._closed:
                return
            log.exception("the memory's index cannot be made; searches scan exactly")

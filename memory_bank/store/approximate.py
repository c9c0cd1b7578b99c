"""An approximate index (faiss) over many embeddings: inverted lists of 4-bit product codes.

It gives candidates alone; their similarities are then taken exactly from the embeddings. So what it costs is a
neighbour that is missed, never a wrong similarity.
"""

from __future__ import annotations

import json
import time
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from memory_bank.store.exact import as_float32
from predimem.core.files import AtomicWrite, write_json

if TYPE_CHECKING:
    from memory_bank.store.vectors import VectorView

CANDIDATES = 20  # for each neighbour that is wanted; their similarities are taken exactly
LEAST_CANDIDATES = 400
PROBED_LISTS = 0.05  # the share of the lists that a search reads
FROM_EACH_LIST = 64  # rows of the training sample
AT_ONCE = 20_000  # rows


def faiss_is_there() -> bool:
    return find_spec("faiss") is not None


class ApproximateIndex:
    """`ann.faiss`, and beside it `ann.json` with what it is of; written whole or not at all."""

    def __init__(self, folder: Path):
        self._file, self._note = folder / "ann.faiss", folder / "ann.json"
        self._made: str | None = None  # the making of the embeddings that the index is of
        self._stamp: int | None = None
        self._index: Any = None
        self.rows = 0

    def is_of(self, view: VectorView) -> bool:
        """Whether the index on the disk is of the rows that the view begins with. It is read where that is new."""
        try:
            stamp = self._note.stat().st_mtime_ns
            if stamp != self._stamp:
                note = json.loads(self._note.read_text())
                self._read(note, stamp)
        except (OSError, ValueError, KeyError, RuntimeError):
            return False
        return self._made == view.head.made and self.rows <= len(view) and self._index is not None

    def candidates(self, query: np.ndarray, k: int, rows: np.ndarray | None) -> np.ndarray:
        """int64 rows that are near to the query, float32 [D]; of these rows alone where they are named."""
        faiss = _faiss()

        index = self._index
        wanted = min(index.ntotal, max(LEAST_CANDIDATES, CANDIDATES * k))
        probed = max(1, round(PROBED_LISTS * index.nlist))
        parameters: Any = faiss.SearchParametersIVF(nprobe=probed)
        if rows is not None:
            chosen = np.zeros(-(-index.ntotal // 8) * 8, bool)
            chosen[rows] = True
            bits = np.packbits(chosen, bitorder="little")
            parameters = faiss.SearchParametersIVF(sel=faiss.IDSelectorBitmap(bits), nprobe=probed)
        _, found = index.search(query[None], wanted, params=parameters)
        return np.unique(found[0][found[0] >= 0])

    def build(self, view: VectorView) -> float:
        """Make it anew over all of the view; the seconds that this took."""
        faiss = _faiss()

        began, count = time.perf_counter(), len(view)
        dim = view.vectors.shape[1]
        lists = max(1, min(round(count**0.5), count // FROM_EACH_LIST))
        index = faiss.index_factory(dim, f"IVF{lists},PQ{_codes(dim)}x4fs", faiss.METRIC_INNER_PRODUCT)
        index.cp.niter = 10
        sample = np.random.default_rng(0).choice(count, min(count, FROM_EACH_LIST * lists), replace=False)
        index.train(as_float32(view.vectors[np.sort(sample)]))
        for first in range(0, count, AT_ONCE):
            index.add(as_float32(np.array(view.vectors[first : first + AT_ONCE])))
        with AtomicWrite(self._file) as partial:
            faiss.write_index(index, str(partial))
        write_json(self._note, {"made": view.head.made, "rows": count})
        return time.perf_counter() - began

    def remove(self) -> None:
        """For good, such as after a deletion: it holds codes of what was deleted."""
        self._note.unlink(missing_ok=True)
        self._file.unlink(missing_ok=True)
        self._made, self._stamp, self._index, self.rows = None, None, None, 0

    def _read(self, note: dict[str, Any], stamp: int) -> None:
        faiss = _faiss()

        index = faiss.read_index(str(self._file))
        if index.ntotal != note["rows"]:
            raise ValueError("the index and its note do not belong together")
        self._made, self._stamp, self._index, self.rows = note["made"], stamp, index, note["rows"]


def _faiss() -> Any:
    import faiss  # its types are those of the C++ interface, which differs

    return faiss


def _codes(dim: int) -> int:
    """How many parts of a vector get a code of 4 bits each: every two dimensions, or as near as divides them."""
    return next(parts for parts in range(max(1, dim // 2), 0, -1) if dim % parts == 0)

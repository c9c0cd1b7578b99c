"""Cuts a history into sessions: at the boundaries that were recorded, else where what is seen changes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

MOST_ALIKE = 0.05  # the cosine below which two frames in a row are of different sessions (`benchmarks.session_cuts`)
LEAST_FRAMES = 2  # a shorter piece belongs to the one before it: an arm that passes the camera is no session


def cut_sessions(
    embeddings: np.ndarray,
    boundaries: Sequence[int] | None = None,
    most_alike: float = MOST_ALIKE,
    least_frames: int = LEAST_FRAMES,
) -> list[range]:
    """The places of each session's frames, in order; together they are all frames.

    embeddings: float [F, D] of the frames, oldest first, from which the mean of all frames is taken away where there
        is one (`Gate.mean`): raw features of one kitchen are all alike.
    boundaries: the first frame of each session, as recorded; None where that is not known. Then a session begins where
        the cosine of two frames in a row is below `most_alike`, unless it would have less than `least_frames`.

    Raises ValueError for boundaries that are not ascending places of frames.
    """
    count = len(embeddings)
    if not count and not boundaries:
        return []
    if boundaries is not None:
        starts = sorted({0, *boundaries})
        if list(boundaries) != sorted(set(boundaries)) or not 0 <= starts[0] <= starts[-1] < count:
            raise ValueError(f"boundaries: expected ascending places from 0 to {count - 1}, got {list(boundaries)}")
        return [range(a, b) for a, b in zip(starts, [*starts[1:], count], strict=True)]
    unit = normalised(np.asarray(embeddings, np.float32))
    alike = (unit[1:] * unit[:-1]).sum(1)
    starts = [0]
    for place in (np.flatnonzero(alike < most_alike) + 1).tolist():
        if place - starts[-1] >= least_frames and count - place >= least_frames:
            starts.append(place)
    return [range(a, b) for a, b in zip(starts, [*starts[1:], count], strict=True)]


def normalised(vectors: np.ndarray) -> np.ndarray:
    """The vectors [..., D] with length 1; those of length 0 stay."""
    return vectors / np.maximum(np.linalg.norm(vectors, axis=-1, keepdims=True), 1e-9)

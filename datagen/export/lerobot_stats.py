"""Statistics of a LeRobot data set: per episode, and over all.

LeRobot takes the weighted mean of the episodes' quantiles for the data set's. That is wrong where episodes differ: a
dimension that moves in few of them got a [q01, q99] that left out up to two thirds of its values. So the quantiles of
numbers are taken from all values here; only images, of which the episodes are sampled, get the weighted mean.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from predimem.core.frames import Frames

QUANTILES = {"q01": 0.01, "q10": 0.10, "q50": 0.50, "q90": 0.90, "q99": 0.99}
IMAGES, PIXELS = 100, 128  # of an episode and along a side, at most about so many: LeRobot samples, too

Stats = dict[str, np.ndarray]
MEMORY_BYTES = 2**28  # of values that are held at once for exact quantiles, unless one dimension alone needs more


def column_stats(values: np.ndarray) -> Stats:
    """Of numbers [T, D]: float64 [D] each, and `count` [1]."""
    values = np.asarray(values, np.float64)
    return _stats(values, len(values))


def image_stats(frames: np.ndarray | Frames) -> Stats:
    """Of uint8 [T, H, W, 3]: per channel, of values in [0, 1], each [3, 1, 1]; `count` is in images."""
    pixel = max(1, min(frames.shape[1:3]) // PIXELS)
    picked = frames[:: -(-len(frames) // IMAGES), ::pixel, ::pixel]
    stats = _stats(picked.reshape(-1, 3) / 255.0, len(picked))
    return {name: value if name == "count" else value.reshape(3, 1, 1) for name, value in stats.items()}


def merge_stats(parts: Sequence[Mapping[str, np.ndarray]]) -> Stats:
    """Of the union of several parts, exactly but for the quantiles: these are the parts' weighted mean."""
    stacked = {name: np.stack([part[name] for part in parts]) for name in parts[0]}
    count = stacked["count"].sum()
    weights = stacked["count"].reshape(-1, *[1] * (stacked["mean"].ndim - 1)) / count
    mean = (weights * stacked["mean"]).sum(axis=0)
    variance = (weights * (stacked["std"] ** 2 + (stacked["mean"] - mean) ** 2)).sum(axis=0)
    return {
        "min": stacked["min"].min(axis=0),
        "max": stacked["max"].max(axis=0),
        "mean": mean,
        "std": np.sqrt(variance),
        "count": np.array([count]),
        **{name: (weights * stacked[name]).sum(axis=0) for name in QUANTILES},
    }


def exact_quantiles(
    read: Callable[[int], np.ndarray], lengths: Sequence[int], dim: int, memory_bytes: int = MEMORY_BYTES
) -> Stats:
    """Quantiles of the union of several parts, float64 [dim] each.

    read: the number of a part -> its values [T, dim]. Parts are read again for each group of dimensions that fit into
    `memory_bytes` together. lengths: T of each part.
    """
    total = sum(lengths)
    group = max(1, min(dim, memory_bytes // (8 * total)))
    found = np.empty((len(QUANTILES), dim))
    for first in range(0, dim, group):
        columns = slice(first, min(first + group, dim))
        values, end = np.empty((columns.stop - first, total)), 0
        for number, length in enumerate(lengths):
            values[:, end : end + length] = read(number)[:, columns].T
            end += length
        found[:, columns] = np.quantile(values, list(QUANTILES.values()), axis=1, overwrite_input=True)
    return dict(zip(QUANTILES, found, strict=True))


def _stats(values: np.ndarray, count: int) -> Stats:
    return {
        "min": values.min(axis=0),
        "max": values.max(axis=0),
        "mean": values.mean(axis=0),
        "std": values.std(axis=0),
        "count": np.array([count]),
        **dict(zip(QUANTILES, np.quantile(values, list(QUANTILES.values()), axis=0), strict=True)),
    }

"""Single-linkage clustering and median selection: exact numbers, and incremental equals batch."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory_bank.selection import Cluster, NominationClusters


def select_keyframes(steps, gap_steps):
    """The keyframes of a whole list of nominations at once: the definition that the bank follows."""
    clusters = []
    for step in sorted(steps):
        if clusters and step - clusters[-1].steps[-1] <= gap_steps:
            clusters[-1].steps.append(step)
        else:
            clusters.append(Cluster([step]))
    return tuple(c.median for c in clusters)


@pytest.mark.parametrize(
    ("steps", "gap", "expected"),
    [
        ([], 6, ()),
        ([7], 6, (7,)),
        ([3, 9], 6, (3,)),  # a gap of exactly 6 joins; the lower median of an even number
        ([3, 10], 6, (3, 10)),
        ([0, 5, 10, 15], 6, (5,)),  # single linkage: a chain is one cluster
        ([4, 4, 4, 6, 9], 6, (4,)),  # repeats count
        ([30, 1, 2, 29, 28], 6, (1, 29)),  # order of arrival does not matter
        ([1, 2, 3], 0, (1, 2, 3)),
        ([2, 2], 0, (2,)),
    ],
)
def test_exact(steps, gap, expected):
    assert select_keyframes(steps, gap) == expected


@given(st.lists(st.integers(0, 300), max_size=40), st.integers(0, 12))
def test_incremental_equals_batch(steps, gap):
    clusters = NominationClusters(gap, max_span_steps=10_000)
    for step in steps:
        clusters.add(step)
    assert clusters.medians() == select_keyframes(steps, gap)


@settings(deadline=None)  # the first call imports scipy
@given(st.lists(st.integers(0, 100), min_size=2, max_size=12, unique=True), st.integers(1, 8))
def test_clusters_equal_scipy(steps, gap):
    from scipy.cluster.hierarchy import fcluster, linkage

    labels = fcluster(linkage(np.array(steps)[:, None], "single"), gap, "distance")
    medians = []
    for label in set(labels):
        members = sorted(np.array(steps)[labels == label])
        medians.append(members[(len(members) - 1) // 2])
    assert select_keyframes(steps, gap) == tuple(sorted(medians))

"""Why keyframes are where they are: the nominations behind each, and how they moved."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from memory_bank import MemoryBank, MemoryConfig
from memory_bank.store import StoredEpisode, StoredPlan
from predimem.core.types import Observation
from predimem.serving.clusters import ClusterChange, cluster_changes, median
from predimem.serving.page.past import history


def test_new_clusters_moves_and_joins() -> None:
    def change(step: int, before: tuple[tuple[int, ...], ...], after: tuple[tuple[int, ...], ...]) -> list[list]:
        return [one.plain() for one in cluster_changes(step, before, after)]

    far, one, more = (3, 3), (20,), (20, 21, 21)
    assert change(21, (far,), (far, one)) == [[21, 20, (), [(20, 1)]]]
    assert change(22, (far, one), (far, more)) == [[22, 21, (20,), [(20, 1), (21, 2)]]]
    assert change(30, (far, one, (26,)), (far, (20, 23, 26))) == [[30, 23, (20, 26), [(20, 1), (23, 1), (26, 1)]]]
    assert change(31, (far, one), (far, one)) == []
    assert change(32, (far, one), (one, (40,))) == [[32, 40, (), [(40, 1)]]]  # the oldest went: the bank is full


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 3)), max_size=60), st.sampled_from([None, 3]))
def test_each_keyframe_is_the_median_of_its_nominations(asked: list[tuple[int, int]], capacity: int | None) -> None:
    config = MemoryConfig(recent_window=2, cluster_gap_steps=2, history_steps=12, keyframe_capacity=capacity)
    bank, seen = MemoryBank(config), ()
    bank.reset("e", "do it")
    for step, (late, times) in enumerate(asked):
        bank.observe(Observation(step, {"cam": np.zeros((2, 2, 3), np.uint8)}, np.zeros(1, np.float32)))
        bank.nominate([max(0, step - late)] * times)
        assert tuple(map(median, bank.nominations)) == bank.keyframe_steps
        told = {change.keyframe: change.nominations for change in cluster_changes(step, seen, bank.nominations)}
        new = {n for n in bank.nominations if n not in seen}
        assert set(told.values()) == new
        seen = bank.nominations


def test_a_kept_episode_tells_why_a_keyframe_moved() -> None:
    nominated = {10: (9,), 12: (11,), 13: (11,), 40: (40,), 300: ()}
    plans = tuple(StoredPlan(step, "go", steps, None, "") for step, steps in nominated.items())
    told = list(history(StoredEpisode(1, "e", "do it", plans), MemoryConfig(cluster_gap_steps=3)))
    assert [one.changes for one in told] == [
        (ClusterChange(10, 9, (), (9,)),),
        (ClusterChange(12, 9, (9,), (9, 11)),),
        (ClusterChange(13, 11, (9,), (9, 11, 11)),),
        (ClusterChange(40, 40, (), (40,)),),
    ]
    assert [one.keyframes for one in told] == [(9,), None, (11,), (11, 40)]

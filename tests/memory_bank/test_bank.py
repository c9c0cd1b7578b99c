import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory_bank import MemoryBank, MemoryConfig
from predimem.core.types import Observation


def observation(step: int, fill: int | None = None) -> Observation:
    image = np.full((4, 4, 3), step % 256 if fill is None else fill, np.uint8)
    return Observation(step, {"cam": image}, np.zeros(2, np.float32), time_s=step / 20)


def filled(steps: int, **config) -> MemoryBank:
    bank = MemoryBank(MemoryConfig(**config))
    bank.reset("episode", "remember")
    for step in range(steps):
        bank.observe(observation(step))
    return bank


def test_snapshot_holds_the_last_window_with_times():
    snapshot = filled(8, recent_window=5).snapshot()
    assert [f.step for f in snapshot.recent] == [3, 4, 5, 6, 7]
    assert [f.time_s for f in snapshot.recent] == [0.15, 0.2, 0.25, 0.3, 0.35]
    assert (snapshot.episode_id, snapshot.instruction, snapshot.step) == ("episode", "remember", 7)


def test_window_is_not_padded_at_the_start():
    assert [f.step for f in filled(2, recent_window=5).snapshot().recent] == [0, 1]


def test_a_strided_window_spans_more_time():
    bank = filled(12, recent_window=3, recent_stride_steps=4)
    assert [f.step for f in bank.snapshot().recent] == [3, 7, 11]
    assert [f.step for f in filled(7, recent_window=3, recent_stride_steps=4).snapshot().recent] == [2, 6]


def test_no_keyframe_is_shown_before_a_strided_window_is_full():
    bank = filled(7, recent_window=3, recent_stride_steps=4)
    bank.nominate([0])
    assert bank.snapshot().keyframes == ()  # the window would reach back to step -2
    for step in (7, 8):
        bank.observe(observation(step))
    assert bank.snapshot().keyframes == ()  # it begins with step 0 itself
    bank.observe(observation(9))
    assert [f.step for f in bank.snapshot().keyframes] == [0]


def test_a_text_memory_lists_what_was_answered():
    bank = filled(3, past_subtasks=True, keyframes=False)
    for subtask in ("pick", "pick", "place", "pick"):
        bank.note_subtask(subtask)
    assert bank.snapshot().past_subtasks == ("pick", "place", "pick")
    bank.reset("next", "remember")
    bank.observe(observation(0))
    assert bank.snapshot().past_subtasks == ()


def test_without_a_text_memory_answers_are_not_remembered():
    bank = filled(3)
    bank.note_subtask("pick")
    assert bank.snapshot().past_subtasks == ()


def test_nominations_are_written_back_after_the_window_moved_on():
    bank = filled(20, recent_window=2)
    bank.nominate([3])
    assert bank.keyframe_steps == (3,)
    keyframe = bank.snapshot().keyframes[0]
    assert keyframe.step == 3 and int(keyframe.images["cam"][0, 0, 0]) == 3


def test_keyframes_inside_the_window_are_not_shown_twice():
    bank = filled(10, recent_window=5, cluster_gap_steps=0)
    bank.nominate([2, 6, 9])
    assert bank.keyframe_steps == (2, 6, 9)
    assert [f.step for f in bank.snapshot().keyframes] == [2]


def test_a_cluster_keeps_its_median_and_moves_with_new_nominations():
    bank = filled(12, cluster_gap_steps=6)
    bank.nominate([0])
    bank.nominate([4, 5])
    assert bank.keyframe_steps == (4,)


def test_capacity_evicts_the_oldest():
    bank = filled(40, keyframe_capacity=2, cluster_gap_steps=1)
    bank.nominate([0, 10, 20])
    assert bank.keyframe_steps == (10, 20)


def test_without_keyframe_bank_nothing_is_stored():
    bank = filled(10, keyframes=False)
    bank.nominate([1])
    assert bank.keyframe_steps == () and bank.snapshot().keyframes == ()


def test_late_nominations_are_dropped_and_early_ones_refused():
    bank = filled(30, recent_window=2, history_steps=10)
    bank.nominate([5])
    assert bank.keyframe_steps == ()
    with pytest.raises(ValueError, match="step 30 was nominated"):
        bank.nominate([30])


def test_old_clusters_are_settled_and_keep_their_frame():
    bank = filled(30, recent_window=2, history_steps=10, cluster_gap_steps=2)
    bank.nominate([22])
    for step in range(30, 60):
        bank.observe(observation(step))
    bank.nominate([55])
    assert bank.keyframe_steps == (22, 55)
    assert int(bank.snapshot().keyframes[0].images["cam"][0, 0, 0]) == 22


def test_a_frame_is_copied_once_and_nobody_can_change_it():
    bank = MemoryBank(MemoryConfig(recent_window=2))
    source = observation(0)
    bank.observe(source)
    source.images["cam"][:] = 99  # the environment reuses its buffer
    bank.nominate([0])
    first = bank.snapshot().recent[0].images["cam"]
    assert int(first[0, 0, 0]) == 0
    bank.observe(observation(1))
    assert bank.snapshot().recent[0].images["cam"] is first
    bank.observe(observation(2))
    assert bank.snapshot().keyframes[0].images["cam"] is first
    with pytest.raises(ValueError):
        first[:] = 1
    owned = np.zeros((4, 4, 3), np.uint8)
    owned.flags.writeable = False
    bank.observe(Observation(3, {"cam": owned}, np.zeros(2, np.float32)))
    assert bank.snapshot().recent[-1].images["cam"] is owned


def test_snapshots_do_not_change_afterwards():
    bank = filled(10, recent_window=2)
    before = bank.snapshot()
    bank.nominate([1])
    bank.observe(observation(10))
    assert before.step == 9 and before.keyframes == () and len(before.recent) == 2


def test_steps_must_increase_and_reset_forgets():
    bank = filled(3)
    with pytest.raises(ValueError, match="in order"):
        bank.observe(observation(2))
    bank.nominate([0])
    bank.reset("next", "again")
    with pytest.raises(ValueError, match="nothing observed"):
        bank.snapshot()
    bank.observe(observation(0))
    assert bank.keyframe_steps == ()


@pytest.mark.parametrize(
    "config",
    [
        {"recent_window": 0},
        {"keyframe_capacity": 0},
        {"cluster_gap_steps": -1},
        {"history_steps": 2},
        {"recent_stride_steps": 0},
        {"recent_stride_steps": 64},
    ],
)
def test_bad_config(config):
    with pytest.raises(ValueError, match=next(iter(config))):
        MemoryConfig(**config)


def test_what_is_upcoming_is_the_next_snapshot_without_what_is_still_to_come():
    """For every step of an episode, and for questions that lie nearer and further apart than the window's frames."""
    config = MemoryConfig(recent_window=3, recent_stride_steps=4, cluster_gap_steps=1, history_steps=40)
    for steps in (1, 3, 4, 7, 30):
        bank, foreseen = MemoryBank(config), {}
        bank.reset("e", "do it")
        for step in range(60):
            bank.observe(observation(step))
            if step % 9 == 0:
                bank.nominate([step])
            snapshot = bank.snapshot()
            if step in foreseen:
                upcoming, last = foreseen[step]
                known = [frame for frame in snapshot.recent if frame.step <= last]
                assert list(upcoming.recent) == known and upcoming.step == step
                nominated_later = [frame for frame in snapshot.keyframes if frame not in upcoming.keyframes]
                assert all(frame.step > last for frame in nominated_later)
                assert upcoming.keyframes == snapshot.keyframes[: len(upcoming.keyframes)]
            foreseen[step + steps] = (bank.upcoming(steps), step)
        assert any(upcoming.keyframes for upcoming, _ in foreseen.values())


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(1, 9), st.lists(st.integers(0, 31), min_size=1, max_size=4)), max_size=40))
def test_keyframes_are_in_order_and_none_is_there_twice(ticks):
    """Also where nominations come late, and join to clusters that span the whole history."""
    bank, now = MemoryBank(MemoryConfig(recent_window=2, cluster_gap_steps=6, history_steps=32)), -1
    bank.reset("e", "do it")
    for steps, back in ticks:
        for _ in range(steps):
            now += 1
            bank.observe(observation(now))
        bank.nominate([max(now - n, 0) for n in back])
        assert list(bank.keyframe_steps) == sorted(set(bank.keyframe_steps))

"""What is recorded for plots: bounded in memory, whole on the disk, and told apart when control is slow."""

from __future__ import annotations

import sqlite3
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from memory_bank.store import NotOwner, StoredFailure, StoreError
from predimem.core.types import Plan
from predimem.serving.config import StateConfig
from predimem.serving.store import open_state
from predimem.serving.trajectory import Recorder, Trajectory, keep_rows, rows_of, slowness, unpack

VERSION_1 = """
CREATE TABLE episodes (id INTEGER PRIMARY KEY AUTOINCREMENT, episode_id TEXT NOT NULL UNIQUE,
    instruction TEXT NOT NULL, began_s REAL NOT NULL, used_s REAL NOT NULL);
CREATE TABLE plans (episode INTEGER NOT NULL REFERENCES episodes (id) ON DELETE CASCADE, step INTEGER NOT NULL,
    subtask TEXT, keyframe_steps TEXT NOT NULL, confidence REAL, text TEXT NOT NULL, at_s REAL NOT NULL,
    PRIMARY KEY (episode, step)) WITHOUT ROWID;
CREATE TABLE pictures (episode INTEGER NOT NULL REFERENCES episodes (id) ON DELETE CASCADE, step INTEGER NOT NULL,
    time_s REAL NOT NULL, cameras TEXT NOT NULL, PRIMARY KEY (episode, step)) WITHOUT ROWID;
CREATE TABLE owners (episode INTEGER PRIMARY KEY REFERENCES episodes (id) ON DELETE CASCADE, owner TEXT NOT NULL);
INSERT INTO episodes VALUES (1, 'old', 'do it', 100.0, 200.0);
INSERT INTO plans VALUES (1, 4, 'look', '[2, 3]', 0.5, '{"subtask": "look"}', 150.0);
PRAGMA user_version = 1;
"""


def record(recorder: Recorder, steps: range, hz: float = 20.0) -> None:
    for step in steps:
        state = np.array([step, step / 3], np.float32)
        recorder.add(step, 1e9 + step / hz, 40.0 if step % 4 == 0 else None, state, -state)


def test_the_last_rows_are_kept_and_each_is_taken_once() -> None:
    recorder, taken = Recorder(10), []
    for first in range(0, 28, 7):
        record(recorder, range(first, first + 7))
        rows = recorder.take()
        assert rows is not None
        taken += rows.steps.tolist()
    assert taken == list(range(28)) and recorder.take() is None
    assert recorder.last(10).steps.tolist() == list(range(18, 28)) and recorder.newest == (27, 1e9 + 27 / 20)
    np.testing.assert_array_equal(recorder.last(2).action, np.array([[-26, -26 / 3], [-27, -9]], np.float32))
    record(recorder, range(28, 50))  # more than there is room for
    rows = recorder.take()
    assert rows is not None and rows.steps.tolist() == list(range(40, 50))
    recorder.clear()
    assert len(recorder) == 0 and recorder.take() is None


def test_pieces_come_back_bit_for_bit_and_the_last_row_of_a_step_counts() -> None:
    recorder, rng = Recorder(100), np.random.default_rng(0)
    pieces, states = [], {}
    for steps in (range(0, 40), range(35, 60)):  # after a kill the client sends a few steps again
        for step in steps:
            states[step] = rng.normal(size=9).astype(np.float32)
            recorder.add(step, 1e9 + step, None, states[step], states[step][:7])
        rows = recorder.take()
        assert rows is not None
        pieces.append(rows.pack())
    found = unpack(pieces)
    assert found is not None and found.steps.tolist() == list(range(60)) and unpack([]) is None
    np.testing.assert_array_equal(found.state, [states[step] for step in range(60)])
    assert found.state.dtype == np.float32 and np.isnan(found.s1_ms).all()
    assert sum(map(len, pieces)) < 65 * (4 * 16 + 12)  # random numbers cannot be compressed, steps and times can


def test_the_rate_of_control() -> None:
    recorder = Recorder(1000)
    record(recorder, range(0, 200), hz=20)
    rows = recorder.last(1000)
    rates = rows.rates_hz()
    assert np.isnan(rates[:20]).all() and np.allclose(rates[20:], 20) and rows.slowness(20) is None
    slow = replace(rows, at_s=1e9 + rows.steps / 11.5)
    assert slow.slowness(20) == "control ran below its 20 Hz for 100 % of the observations (11.5 Hz in the median)"
    chunks = replace(rows, steps=rows.steps * 4, at_s=1e9 + rows.steps / 5)  # one request for four steps
    assert chunks.slowness(20) is None
    assert slowness(100, 5.0, 20, 0.9) is None and slowness(3, 0.5, 20, 0.9) is None
    assert "6.0 Hz, below its 20 Hz: S1 takes 90 % of the time" in str(slowness(30, 5.0, 20, 0.9))


def test_what_a_page_gets() -> None:
    recorder = Recorder(1000)
    record(recorder, range(0, 500))
    told = recorder.last(1000).plain(first_step=490)
    assert told["steps"] == list(range(490, 500)) and told["rate_hz"] == [20.0] * 10 and told["every"] == 1
    assert told["s1_ms"][:3] == [None, None, 40.0] and told["state"][1] == [491.0, 163.6667]
    told = recorder.last(1000).plain(most=200)
    assert told["every"] == 3 and len(told["steps"]) == 167


def test_a_state_folder_of_version_1_opens_and_goes_on(tmp_path: Path) -> None:
    database = sqlite3.connect(tmp_path / "episodes.db")
    database.executescript(VERSION_1)
    database.close()
    store = open_state(tmp_path, StateConfig(sync=False))
    old = store.take_over("old")
    assert old is not None and old.began_s == 100.0 and old.failures == () and old.outcome is None
    assert (old.plans[0].keyframe_steps, old.plans[0].at_s, old.plans[0].latency_s) == ((2, 3), 150.0, None)
    assert rows_of(store, old.key) is None
    recorder = Recorder(10)
    record(recorder, range(5))
    store.keep(old.key, Plan("old", 6, "go", text="{}"), {}, latency_s=0.25)
    store.keep_failure(old.key, StoredFailure(8, "not JSON", "{", 160.0, 0.5))
    keep_rows(store, old.key, recorder.last(10))
    store.close()
    again = open_state(tmp_path, StateConfig(sync=False))
    found = again.take_over("old")
    assert found is not None and [plan.latency_s for plan in found.plans] == [None, 0.25]
    assert found.failures == (StoredFailure(8, "not JSON", "{", 160.0, 0.5),)
    kept = rows_of(again, found.key)
    assert isinstance(kept, Trajectory) and kept.steps.tolist() == [0, 1, 2, 3, 4]
    again.begin("old", "do it")
    for write in (
        lambda: keep_rows(again, old.key, kept),
        lambda: again.keep_failure(old.key, found.failures[0]),
    ):
        with pytest.raises(NotOwner):
            write()
    assert rows_of(again, old.key) is None  # it went with its episode
    again.close()


def test_a_state_folder_of_a_later_version_is_refused(tmp_path: Path) -> None:
    database = sqlite3.connect(tmp_path / "episodes.db")
    database.execute("PRAGMA user_version = 4")
    database.close()
    with pytest.raises(StoreError, match=r"another version \(4\); this one reads up to 3"):
        open_state(tmp_path, StateConfig())

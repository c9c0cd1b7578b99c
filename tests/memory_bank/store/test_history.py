"""What a robot nominated in earlier episodes comes out of the store as the history of its next one."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest

from memory_bank.retrieval.from_store import history_of
from memory_bank.store import open_store
from memory_bank.store.embedding import embed_missing
from predimem.core.types import Frame
from tests.memory_bank.store.conftest import Open
from tests.memory_bank.store.made_up import DIM, image, keyframe, play


def test_the_episodes_of_a_robot_are_its_history(opened: Open) -> None:
    store = opened()
    play(store, "left/1", (3, 8), "put it away", session="monday")
    play(store, "left/2", (5,), "find it", session="monday")
    key = play(store, "left/3", (1,), "find it again")
    store.keep_frames(key, [keyframe("left/3", 4, nominated=False)])
    play(store, "right/1", (2,), "find it")
    past = history_of(store, "left", now_s=time.time() + 3600)
    assert [session.name for session in past.sessions[:2]] == ["monday/left/1", "monday/left/2"]
    assert [session.instruction for session in past.sessions] == ["put it away", "find it", "find it again"]
    assert [[frame.step for frame in session.frames] for session in past.sessions] == [[3, 8], [5], [1]]
    np.testing.assert_array_equal(past.sessions[0].frames[1].images["hand"], image("left/1", 8))
    assert past.robot == "left" and all(session.robot == "left" for session in past.sessions)
    assert all(3500 < session.age_s < 3700 for session in past.sessions)
    assert [s.instruction for s in history_of(store, "left", "left/3", most=1).sessions] == ["find it"]
    assert history_of(store, "nobody").sessions == ()


def test_what_another_camera_saw_and_what_is_deleted_meanwhile_is_left_out(
    opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = opened()
    old = play(store, "left/1", (3,), "put it away")
    play(store, "left/2", (5, 7), "put it away")
    size = image("left/2", 5).shape[:2]
    assert len(history_of(store, "left", shows={"hand": size}).sessions) == 2
    assert history_of(store, "left", shows={"hand": (size[0] * 2, size[1])}).sessions == ()
    assert history_of(store, "left", shows={"hand": size, "new camera": size}).sessions == ()
    read = store.frame

    def deleted_before(key: int, step: int) -> Frame:
        if key == old:
            store.delete("left", episode_id="left/1")
        return read(key, step)

    monkeypatch.setattr(store, "frame", deleted_before)
    assert [[f.step for f in session.frames] for session in history_of(store, "left").sessions] == [[5, 7]]


def test_an_image_that_is_damaged_takes_its_step_along_and_nothing_else(tmp_path: Path) -> None:
    store = open_store(tmp_path, sync=False)
    key = play(store, "left/1", (3, 8), "put it away")
    (file,) = tmp_path.glob(f"pictures/{key}/3-0.png")
    file.write_bytes(file.read_bytes()[:40])
    assert [[f.step for f in session.frames] for session in history_of(store, "left").sessions] == [[8]]
    missing = store.without_embedding("another")
    embedded = []
    list(
        embed_missing(store, missing, "another", lambda frames: embedded.extend(frames) or np.ones((len(frames), DIM)))
    )
    assert [frame.step for frame in embedded] == [8]
    store.close()

"""What is deleted is gone: rows, files and embeddings; what a retention does not name stays."""

from __future__ import annotations

import sqlite3
import time
from pathlib import Path

import pytest

from memory_bank.store import MemoryStore, NotOwner, Retention, StoreError, StoreFault, open_store
from memory_bank.store.images import Pngs
from tests.memory_bank.store.conftest import Open
from tests.memory_bank.store.made_up import MODEL, keyframe, play, vector


def names(store: MemoryStore) -> list[str]:
    return sorted(one["episode_id"] for one in store.episodes())


def age(store: MemoryStore, episode_id: str, days: float) -> None:
    with store.database.writing() as write:
        write("UPDATE episodes SET used_s = ? WHERE episode_id = ?", (time.time() - 86400 * days, episode_id))


def folders(place: str | Path) -> list[str]:
    return sorted(folder.name for folder in (Path(place) / "pictures").iterdir())


def test_a_session_and_a_robot(opened: Open, place: str) -> None:
    store = opened()
    for name, session in (("left/1", "monday"), ("left/2", "monday"), ("left/3", "tuesday"), ("right/1", "monday")):
        play(store, name, session=session)
    store.note("x", "left", "monday")
    assert store.search(vector("left/1", 3), 1, model=MODEL)[0].keyframe.episode_id == "left/1"
    removed = store.delete("left", "monday")
    assert (removed.episodes, removed.keyframes) == (2, 4) and removed.image_bytes > 500
    assert names(store) == ["left/3", "right/1"] and [s.session for s in store.sessions("left")] == ["tuesday"]
    assert store.notes("left") == []
    assert len(store.search(vector("left/1", 3), 10, model=MODEL)) == 4
    store.delete("right")
    assert [robot.robot for robot in store.robots()] == ["left"]
    with pytest.raises(StoreError, match=r"no robot 'right'; the last ones are: left"):
        store.delete("right")
    with pytest.raises(StoreError, match="no episode 'left/9'"):
        store.delete("left", episode_id="left/9")
    store.delete("left", episode_id="left/3")
    assert store.robots() == [] and store.search(vector("left/3", 3), 10, model=MODEL) == []
    if not place.startswith("postgresql"):
        assert folders(place) == []
        assert (Path(place) / "index" / "1" / "vectors.f2").read_bytes().strip(b"\0") == b""
    for table in ("keyframes", "embeddings", "images", "plans", "owners", "sessions", "notes"):
        with store.database.reading() as read:
            assert read(f"SELECT count(*) FROM {table}") == [(0,)], table


def test_retention(opened: Open) -> None:
    store = opened()
    for name in ("left/1", "left/2", "left/3", "right/1"):
        store.leave(play(store, name))
    age(store, "left/1", days=40)
    age(store, "right/1", days=20)
    assert opened(days=30).prune().episodes == 1 and names(store) == ["left/2", "left/3", "right/1"]
    opened(episodes_per_robot=1).prune()
    assert names(store) == ["left/3", "right/1"]
    store.leave(play(store, "left/4"))
    size = sum(robot.image_bytes for robot in store.robots())
    opened(gib=(size + 1) / 2**30).prune()
    assert names(store) == ["left/3", "left/4", "right/1"]
    opened(gib=(size - 1) / 2**30).prune()
    assert names(store) == ["left/3", "left/4"]
    opened(episodes=2).begin("left/5", "find it")  # a new episode makes room for itself
    assert names(store) == ["left/4", "left/5"]
    opened(gib=1e-9).begin("left/6", "find it")
    assert names(store) == ["left/5", "left/6"]  # which have no images
    with pytest.raises(ValueError, match="retention: days has to be positive"):
        Retention(days=0)


def test_no_episode_that_is_played_is_removed(opened: Open) -> None:
    """Two arms of one name, of which only one episode may stay."""
    store = opened(episodes_per_robot=1, episodes=1, gib=1e-9)
    first, second = play(store, "arm/1"), play(store, "arm/2")
    store.keep_frames(first, [keyframe("arm/1", 9)])
    opened(episodes=1).prune()
    assert names(store) == ["arm/1", "arm/2"]
    opened().leave(second)  # which is not its own
    store.leave(first)
    with pytest.raises(NotOwner):
        store.keep_frames(first, [keyframe("arm/1", 10)])
    store.prune()
    assert names(store) == ["arm/2"]
    age(store, "arm/2", days=0.1)  # its server has crashed
    other = opened(episodes=1)
    assert other.begin("arm/3", "find it") and names(store) == ["arm/3"]
    assert opened(days=1e-9).prune().episodes == 0
    other.close()
    assert opened(days=1e-9).prune().episodes == 1


def test_files_that_a_crash_left_are_removed_at_the_next_start(tmp_path: Path) -> None:
    """Between the transaction and the files the process is gone."""
    store = open_store(tmp_path, sync=False)
    key = play(store, "arm/1")
    store.images.remove = lambda key: False  # type: ignore[method-assign]
    with pytest.raises(StoreFault, match="the images of 1 episodes could not be removed"):
        store.delete("arm")
    assert folders(tmp_path) == [str(key)]
    store.close()
    open_store(tmp_path).close()
    assert folders(tmp_path) == []
    database = sqlite3.connect(tmp_path / "episodes.db")
    assert database.execute("SELECT count(*) FROM trash").fetchone() == (0,)
    database.close()


def test_a_deletion_that_is_undone_keeps_the_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = open_store(tmp_path, sync=False)
    play(store, "arm/1")
    monkeypatch.setattr("memory_bank.store.store.add_episode", lambda *a: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        store.begin("arm/1", "find it")
    monkeypatch.undo()
    found = store.find("arm/1")
    assert found is not None and found.image_steps == (3, 8)
    store.frame(found.key, 3)
    store.begin("arm/2", "find it")
    store.frame(found.key, 3)
    store.close()


def test_a_robot_that_plays_on_writes_nothing_of_what_was_deleted(
    opened: Open, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its data are deleted by somebody else, between two plans or while its images are being written."""
    store, other = opened(), opened()
    key = play(store, "arm/1")
    other.delete("arm")
    with pytest.raises(NotOwner, match="or it was deleted"):
        store.keep_frames(key, [keyframe("arm/1", 20)])
    key, write = play(store, "arm/1"), store.images.write

    def too_late(key: int, pngs: Pngs) -> None:
        other.delete("arm")
        write(key, pngs)

    monkeypatch.setattr(store.images, "write", too_late)
    with pytest.raises(NotOwner, match="or it was deleted"):
        store.keep_frames(key, [keyframe("arm/1", 20)])
    assert store.robots() == [] and (place.startswith("postgresql") or folders(place) == [])


def test_deleted_words_are_not_in_the_file_any_more(tmp_path: Path) -> None:
    store = open_store(tmp_path, sync=False)
    play(store, "arm/1", task="the password is swordfish")
    store.delete("arm")
    store.close()
    with sqlite3.connect(tmp_path / "episodes.db") as database:
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    database.close()
    assert b"swordfish" not in (tmp_path / "episodes.db").read_bytes()

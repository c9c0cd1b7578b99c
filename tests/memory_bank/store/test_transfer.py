"""A session as one file: from any store to any other, whole or not at all."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import numpy as np
import pytest

from memory_bank.store import (
    MemoryStore,
    Scope,
    StoredFailure,
    StoreError,
    export_session,
    import_session,
    open_store,
)
from predimem.core.types import Plan
from tests.memory_bank.store.conftest import Open
from tests.memory_bank.store.made_up import MODEL, assert_images, play, vector


def told(store: MemoryStore, episode_id: str) -> object:
    """All that the store says of an episode, but its numbers."""
    stored = store.find(episode_id)
    assert stored is not None
    frames = [(k.step, k.time_s, k.at_s, k.cameras, k.subtask, k.nominated) for k in store.keyframes()]
    frames = [f for f, k in zip(frames, store.keyframes(), strict=True) if k.episode_id == episode_id]
    kept, vectors = store.embeddings(MODEL, Scope(episode_id=episode_id))
    embedded = [(k.step, v.tobytes()) for k, v in zip(kept, vectors, strict=True)]
    notes = [(n.episode_id, n.at_s, n.author, n.text) for n in store.notes(stored.robot)]
    return (
        *(stored.instruction, stored.plans, stored.failures, stored.image_steps, stored.outcome, stored.began_s),
        *(frames, embedded, store.trajectory_pieces(stored.key), notes),
    )


@pytest.fixture
def source(opened: Open) -> MemoryStore:
    store = opened()
    key = play(store, "arm/1", (3, 8), session="monday")
    store.keep(key, Plan("arm/1", 8, "look", (3,), "{}", confidence=0.25), {}, 0.5)
    store.keep_failure(key, StoredFailure(9, "no JSON", "{", 100.0, None))
    store.keep_piece(key, 1.0, b"\x00\xff")
    store.end("arm/1", "failure")
    play(store, "arm/2", (1,), session="monday")
    play(store, "arm/3", (1,), session="tuesday")
    store.note("slipped", "arm", episode_id="arm/1", author="Ann")
    store.note("hot", "arm", "monday")
    return store


def test_a_session_moves_to_another_store(source: MemoryStore, tmp_path: Path) -> None:
    file = tmp_path / "monday.session"
    assert export_session(source, "arm", "monday", file) == 3
    other = open_store(tmp_path / "other", sync=False)
    play(other, "leg/1")  # so that keys differ
    assert import_session(other, file) == "session 'monday' of robot 'arm': 2 episodes, 3 keyframes"
    for name in ("arm/1", "arm/2"):
        assert told(other, name) == told(source, name)
        found = other.find(name)
        assert found is not None and found.session == "monday"
        for step in found.image_steps:
            assert_images(other, found.key, name, step)
    assert other.find("arm/3") is None
    assert [h.keyframe.step for h in other.search(vector("arm/1", 8), 1, model=MODEL, scope=Scope(robot="arm"))] == [8]
    assert other.take_over("arm/1") is not None
    other.close()


def test_an_image_that_has_got_lost_is_named(tmp_path: Path) -> None:
    store = open_store(tmp_path / "state", sync=False)
    store.image_file(play(store, "arm/1", (3, 8), session="monday"), 8, 0).unlink()
    with pytest.raises(StoreError, match="an image of step 8 of episode 'arm/1' has got lost"):
        export_session(store, "arm", "monday", tmp_path / "monday.session")
    assert not (tmp_path / "monday.session").exists()
    store.close()


def test_into_the_store_that_it_came_from(source: MemoryStore, tmp_path: Path) -> None:
    file = tmp_path / "monday.session"
    export_session(source, "arm", "monday", file)
    with pytest.raises(StoreError, match="has a session 'monday' of the robot 'arm' already"):
        import_session(source, file)
    import_session(source, file, robot="twin", session="copy")
    assert [(e["episode_id"], e["robot"], e["session"]) for e in source.episodes(Scope(robot="twin"))] == [
        ("arm/2-2", "twin", "copy"),
        ("arm/1-2", "twin", "copy"),
    ]
    found = source.find("arm/1-2")
    assert found is not None
    assert_images(source, found.key, "arm/1", 8)
    source.delete("arm", "monday")
    assert_images(source, found.key, "arm/1", 8)
    new = source.begin("arm/4", "find it")  # keys go on behind those of the import
    assert new > found.key


def test_what_is_no_such_file_changes_nothing(opened: Open, tmp_path: Path) -> None:
    store = opened()
    play(store, "arm/1", session="monday")
    file = tmp_path / "monday.session"
    export_session(store, "arm", "monday", file)
    with zipfile.ZipFile(file) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    about = json.loads(parts["session.json"])
    faults: list[dict[str, bytes]] = [
        {"images/0/3-1.png": b"no image"},
        {"embeddings/0/0.npy": b"no array"},
        {"session.json": b"[]"},
        {"session.json": json.dumps(about | {"version": 2}).encode()},
        {"session.json": json.dumps({name: part for name, part in about.items() if name != "notes"}).encode()},
        {"session.json": json.dumps(about | {"robot": 7}).encode()},
        {"session.json": json.dumps(about | {"episodes": [about["episodes"][0] | {"plans": [[1]]}]}).encode()},
    ]
    before = store.robots()
    for fault in faults:
        with zipfile.ZipFile(tmp_path / "bad", "w") as archive:
            for name, data in (parts | fault).items():
                archive.writestr(name, data)
        with pytest.raises(StoreError, match="is no session that `predimem memory export` wrote, or is damaged"):
            import_session(store, tmp_path / "bad", session="other")
    (tmp_path / "bad").write_bytes(file.read_bytes()[:-100])
    with pytest.raises(StoreError, match="or is damaged"):
        import_session(store, tmp_path / "bad", session="other")
    for missing in ("images/0/3-1.png", "session.json", "embeddings/0/0.npy"):
        with zipfile.ZipFile(tmp_path / "bad", "w") as archive:
            for name, data in parts.items():
                if name != missing:
                    archive.writestr(name, data)
        with pytest.raises(StoreError, match="or is damaged"):
            import_session(store, tmp_path / "bad", session="other")
    with pytest.raises(FileNotFoundError):
        import_session(store, tmp_path / "nowhere")
    with pytest.raises(StoreError, match="no session 'x'"):
        export_session(store, "arm", "x", tmp_path / "x")
    assert store.robots() == before and not (tmp_path / "x").exists()


def test_an_import_that_is_cut_short_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The images are written, and the process is gone before the transaction: a day later they are removed, and no
    episode gets their folder meanwhile."""
    source = open_store(tmp_path / "source", sync=False)
    play(source, "arm/1", session="monday")
    export_session(source, "arm", "monday", tmp_path / "file")
    source.close()
    store = open_store(tmp_path / "store", sync=False)
    monkeypatch.setattr("memory_bank.store.transfer.session_key", lambda *a: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        import_session(store, tmp_path / "file")
    monkeypatch.undo()
    assert store.robots() == [] and (tmp_path / "store/pictures/1").is_dir()
    assert store.begin("arm/9", "find it") == 2
    store.sweep()
    assert (tmp_path / "store/pictures/1").is_dir()  # another process may be at it
    with store.database.writing() as write:
        write("UPDATE trash SET due_s = 0")
    store.close()
    store = open_store(tmp_path / "store", sync=False)
    assert not (tmp_path / "store/pictures/1").exists()
    import_session(store, tmp_path / "file")
    assert np.array_equal(store.embeddings(MODEL)[0][0].step, 3)
    store.close()

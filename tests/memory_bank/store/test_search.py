"""Searches give the nearest keyframes of the scope, whatever happened to the files that make them fast."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from memory_bank.store import MemoryStore, NewKeyframe, Scope, StoreError, approximate, open_store
from memory_bank.store.exact import as_float32
from memory_bank.store.search import FileSearcher
from predimem.core.types import Frame
from tests.memory_bank.store.conftest import Open
from tests.memory_bank.store.made_up import DIM, MODEL, frame, play, vector

BLANK = np.zeros((2, 2, 3), np.uint8)


def brute(store: MemoryStore, query: np.ndarray, k: int, scope: Scope) -> list[tuple[str, int]]:
    kept, vectors = store.embeddings(MODEL, scope)
    similar = vectors.astype(np.float64) @ (query / np.linalg.norm(query))
    return [(kept[n].episode_id, kept[n].step) for n in np.argsort(-similar)[:k]]


def found(store: MemoryStore, query: np.ndarray, k: int = 5, scope: Scope = Scope()) -> list[tuple[str, int]]:  # noqa: B008
    return [(h.keyframe.episode_id, h.keyframe.step) for h in store.search(query, k, model=MODEL, scope=scope)]


def fill(store: MemoryStore, name: str, rows: np.ndarray) -> int:
    """Many keyframes with small images."""
    key = store.begin(name, "find it")
    frames = [Frame(step, step / 20, {"hand": BLANK}) for step in range(len(rows))]
    store.keep_frames(key, [NewKeyframe(f, embeddings={MODEL: v}) for f, v in zip(frames, rows, strict=True)])
    return key


def test_half_precision_is_read_bit_for_bit() -> None:
    every = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    finite = np.isfinite(every)
    np.testing.assert_array_equal(as_float32(every)[finite], every.astype(np.float32)[finite])


def test_the_nearest_of_every_scope(opened: Open) -> None:
    store = opened()
    for robot in ("left", "right"):
        for episode in range(4):
            task = f"task {episode % 2}"
            play(store, f"{robot}/{episode}", range(7), task, session=f"day {episode // 2}")
    second = store.find("right/1")
    assert second is not None and second.began_s is not None
    scopes = (
        Scope(),
        Scope(robot="left"),
        Scope(robot="left", session="day 1"),
        Scope(task="task 1"),
        Scope(without_episode="left/2"),
        Scope(robot="right", before_s=second.began_s),
        Scope(subtask="drawer", robot="left"),
        Scope(nominated=False),
        Scope(robot="nobody"),
    )
    rng = np.random.default_rng(0)
    for scope in scopes:
        for _ in range(5):
            query = rng.normal(size=DIM)
            assert found(store, query, 5, scope) == brute(store, query, 5, scope), scope
    [hit] = store.search(5 * vector("left/2", 4), 1, model=MODEL)
    assert (hit.keyframe.episode_id, hit.keyframe.step) == ("left/2", 4) and abs(hit.similarity - 1) < 2e-3
    assert store.search(vector("left/2", 4), model="unknown") == []
    for wrong, why in ((np.ones(3), "have 16 dimensions, the query has 3"), (np.zeros(DIM), "not all 0")):
        with pytest.raises(StoreError, match=why):
            store.search(wrong, model=MODEL)
    with pytest.raises(StoreError, match="k has to be at least 1"):
        store.search(vector("left/2", 4), 0, model=MODEL)


def test_new_and_deleted_keyframes_are_seen_at_once(opened: Open) -> None:
    """By the store that wrote, and by another one."""
    store, other = opened(), opened()
    play(store, "arm/1")
    assert found(other, vector("arm/1", 3), 1) == [("arm/1", 3)]
    play(store, "arm/2")
    for one in (store, other):
        assert found(one, vector("arm/2", 8), 1) == [("arm/2", 8)]
    store.delete("arm", episode_id="arm/2")
    for one in (store, other):
        assert found(one, vector("arm/2", 8), 9) == brute(store, vector("arm/2", 8), 9, Scope())
    play(store, "arm/3")
    store.begin("arm/1", "find it")
    for one in (store, other):
        assert sorted(found(one, vector("arm/2", 8), 9)) == [("arm/3", 3), ("arm/3", 8)]


def test_another_model_beside_the_first(opened: Open) -> None:
    store = opened()
    play(store, "arm/1", (1, 2, 3))
    ids = {k.step: k.id for k in store.keyframes()}
    store.embed("other", {ids[1]: [1, 0], ids[2]: [0, 1], 10**9: [1, 1]})
    store.embed("other", {ids[1]: [0, 1]})  # has one already
    assert store.models() == {MODEL: DIM, "other": 2}
    hits = store.search([1, 0.1], 5, model="other")
    assert [(h.keyframe.step, round(h.similarity, 2)) for h in hits] == [(1, 1.0), (2, 0.1)]
    np.testing.assert_allclose(store.embedding_of(ids[2], "other"), [0, 1])
    with pytest.raises(StoreError, match=r"no keyframe \d+ with an embedding of the model 'other'"):
        store.embedding_of(ids[3], "other")


DAMAGES = {
    "gone": lambda folder: shutil.rmtree(folder),
    "no head": lambda folder: (folder / "head.json").unlink(),
    "half a head": lambda folder: (folder / "head.json").write_text('{"store": "'),
    "another store's": lambda folder: (folder / "head.json").write_text(
        json.dumps(json.loads((folder / "head.json").read_text()) | {"store": "x"})
    ),
    "short vectors": lambda folder: (folder / "vectors.f2").write_bytes((folder / "vectors.f2").read_bytes()[:-1]),
    "short rows": lambda folder: (folder / "rows.i8").write_bytes((folder / "rows.i8").read_bytes()[:-8]),
    "half a batch behind the end": lambda folder: _append(folder),
}


def _append(folder: Path) -> None:
    for name, data in (("vectors.f2", b"\xff" * 33), ("rows.i8", b"\x01" * 20)):
        with open(folder / name, "ab") as file:
            file.write(data)


@pytest.mark.parametrize("damage", DAMAGES)
def test_what_a_crash_leaves_of_the_files_is_mended(tmp_path: Path, damage: str) -> None:
    store = open_store(tmp_path, sync=False)
    play(store, "arm/1", range(9))
    query = vector("arm/1", 4)
    assert found(store, query) == brute(store, query, 5, Scope())
    store.close()
    DAMAGES[damage](tmp_path / "index" / "1")
    store = open_store(tmp_path, sync=False)
    play(store, "arm/2", range(9))
    for query in (vector("arm/1", 4), vector("arm/2", 8)):
        assert found(store, query) == brute(store, query, 5, Scope())
    store.close()


def test_an_older_copy_of_the_database_in_place_of_the_newest(tmp_path: Path) -> None:
    store = open_store(tmp_path / "state", sync=False)
    play(store, "arm/1")
    store.close()
    shutil.copytree(tmp_path / "state", tmp_path / "copy")
    store = open_store(tmp_path / "state", sync=False)
    play(store, "arm/2", range(5))
    found(store, vector("arm/2", 1))
    store.close()
    shutil.copy(tmp_path / "copy/episodes.db", tmp_path / "state/episodes.db")
    store = open_store(tmp_path / "state", sync=False)
    play(store, "arm/3", range(3))
    assert found(store, vector("arm/3", 2), 9) == brute(store, vector("arm/3", 2), 9, Scope())
    store.close()


@pytest.fixture
def many(tmp_path: Path) -> Iterator[MemoryStore]:
    """4,000 keyframes in 40 groups, of two robots, in a store that scans 500 exactly and is asked for an index."""
    store = open_store(tmp_path, sync=False)
    rng = np.random.default_rng(1)
    centres = rng.normal(size=(40, DIM))
    for robot in ("left", "right"):
        fill(store, f"{robot}/1", centres[rng.integers(0, 40, 2000)] + 0.3 * rng.normal(size=(2000, DIM)))
    store.close()
    store = open_store(tmp_path, sync=False)
    store._searcher.close()
    store._searcher = FileSearcher(tmp_path, store.database, in_background=False, exact_rows=500)
    yield store
    store.close()


def recall(store: MemoryStore, scope: Scope) -> float:
    shares = []
    for _, step in zip(range(20), range(0, 2000, 97), strict=False):
        query = store.embeddings(MODEL, Scope(robot="left"))[1][step].astype(np.float64)
        shares.append(len(set(found(store, query, 10, scope)) & set(brute(store, query, 10, scope))) / 10)
    return float(np.mean(shares))


@pytest.mark.slow
@pytest.mark.needs("faiss")
def test_an_approximate_index(many: MemoryStore, tmp_path: Path) -> None:
    assert recall(many, Scope()) == 1.0  # there is none yet: the scan is exact
    assert not (tmp_path / "index/1/ann.faiss").exists()
    [said] = many.build_index()
    assert said.startswith("tower: 4000 embeddings indexed in ") and (tmp_path / "index/1/ann.faiss").exists()
    assert recall(many, Scope()) >= 0.95
    assert recall(many, Scope(robot="right")) >= 0.95
    query = np.random.default_rng(5).normal(size=DIM)
    new = query + 0.01 * np.random.default_rng(6).normal(size=(3, DIM))
    fill(many, "left/2", new)  # is not in the index, and found at once
    assert {name for name, _ in found(many, query, 3)} == {"left/2"}
    similar = [hit.similarity for hit in many.search(query, 3, model=MODEL)]
    exact = sorted((new / np.linalg.norm(new, axis=1)[:, None] @ (query / np.linalg.norm(query))).tolist())[::-1]
    np.testing.assert_allclose(similar, exact, atol=1e-3)


@pytest.mark.needs("faiss")
def test_an_index_that_is_damaged_or_of_what_was_deleted(many: MemoryStore, tmp_path: Path) -> None:
    many.build_index()
    file = tmp_path / "index/1/ann.faiss"
    whole = file.read_bytes()
    file.write_bytes(whole[: len(whole) // 2])
    fresh = open_store(tmp_path, sync=False)
    fresh._searcher = FileSearcher(tmp_path, fresh.database, in_background=False, exact_rows=500)
    assert recall(fresh, Scope()) == 1.0  # scanned exactly
    fresh.close()
    many.build_index()
    many.delete("left")
    assert not file.exists() and {name for name, _ in found(many, np.ones(DIM), 50)} == {"right/1"}


@pytest.mark.needs("faiss")
def test_an_index_that_is_being_made_while_something_is_deleted_is_given_up(
    many: MemoryStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = approximate.write_json

    def deleted_before(path: Path, note: object) -> None:
        many.delete("left")
        write(path, note)

    monkeypatch.setattr(approximate, "write_json", deleted_before)
    assert many.build_index() == ["tower: something was deleted meanwhile, and the index with it; make it again"]
    assert not list((tmp_path / "index/1").glob("ann.*"))


@pytest.mark.needs("faiss")
def test_the_index_is_made_in_the_background(tmp_path: Path) -> None:
    store = open_store(tmp_path, sync=False)
    searcher = store._searcher = FileSearcher(tmp_path, store.database, exact_rows=500)
    fill(store, "arm/1", np.random.default_rng(0).normal(size=(2000, DIM)))
    assert len(found(store, np.ones(DIM), 5)) == 5
    assert searcher._builder is not None
    searcher._builder.join(60)
    assert (tmp_path / "index/1/ann.faiss").exists()
    store.close()


@pytest.mark.needs("postgres")
def test_the_index_of_postgres(database: str) -> None:
    store = open_store(database)
    rng = np.random.default_rng(1)
    fill(store, "left/1", rng.normal(size=(300, DIM)))
    fill(store, "right/1", rng.normal(size=(300, DIM)))
    assert store.build_index() == ["tower: 600 embeddings indexed"] == store.build_index()
    with store.database.reading() as read:
        assert read("SELECT indexdef FROM pg_indexes WHERE indexname = 'embeddings_hnsw_1'")
    for scope in (Scope(), Scope(robot="left")):
        query = rng.normal(size=DIM)
        assert len(set(found(store, query, 10, scope)) & set(brute(store, query, 10, scope))) >= 9
    store.close()


def test_frames_without_embeddings_are_not_in_the_way(opened: Open) -> None:
    store = opened()
    key = play(store, "arm/1", (1,))
    store.keep_frames(key, [NewKeyframe(frame("arm/1", 2))])
    assert found(store, vector("arm/1", 2), 9) == [("arm/1", 1)]

"""One interface over both databases: what is kept comes back, belongs to somebody, and can be deleted for good."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pytest

from memory_bank.store import NewKeyframe, NotOwner, Scope, StoredFailure, StoreError, StoreFault, open_store
from predimem.core.types import Plan
from tests.memory_bank.store.conftest import Open
from tests.memory_bank.store.made_up import MODEL, assert_images, frame, keyframe, play, vector


def test_an_episode_comes_back_whole(opened: Open) -> None:
    store = opened()
    key = store.begin("arm/1", "find it", session="tuesday")
    assert (begun := store.find("arm/1")) is not None and begun.last_step is None
    plan = Plan("arm/1", 5, "look", (3, 5), '{"subtask": "look"}', confidence=0.5)
    store.keep(key, plan, {3: frame("a", 3)}, 0.25, embeddings={3: {MODEL: vector("a", 3)}})
    store.keep(key, Plan("arm/1", 9, None, (), "x"), {3: frame("a", 3), 9: frame("a", 9)})
    ahead = Plan("arm/1", 12, "go", (9,), "y", next_subtasks=("look", "go"))
    store.keep(key, ahead, {})  # nominated after its image was kept
    store.keep_failure(key, StoredFailure(14, "no JSON", "{", 100.0, None))
    store.keep_piece(key, 1.0, b"\x00one")
    store.keep_piece(key, 2.0, b"two")
    store.end("arm/1", "success")
    other = opened()
    found = other.find("arm/1")
    assert found is not None and (found.key, found.robot, found.session) == (key, "arm", "tuesday")
    assert [(p.step, p.subtask, p.keyframe_steps, p.confidence, p.text, p.latency_s) for p in found.plans] == [
        (5, "look", (3, 5), 0.5, '{"subtask": "look"}', 0.25),
        (9, None, (), None, "x", None),
        (12, "go", (9,), None, "y", None),
    ]
    assert [p.next_subtasks for p in found.plans] == [(), (), ("look", "go")]
    assert found.failures == (StoredFailure(14, "no JSON", "{", 100.0, None),)
    assert (found.outcome, found.image_steps, found.last_step) == ("success", (3, 9), 14)
    assert other.trajectory_pieces(key) == [b"\x00one", b"two"]
    for step in (3, 9):
        assert_images(other, key, "a", step)
    with pytest.raises(KeyError):
        other.frame(key, 4)
    newest, oldest = other.keyframes()
    assert (newest.step, newest.subtask, newest.nominated, newest.cameras) == (9, None, True, ("agentview", "hand"))
    assert (oldest.step, oldest.subtask, oldest.nominated, oldest.instruction) == (3, "look", True, "find it")
    kept, vectors = other.embeddings(MODEL)
    assert [one.step for one in kept] == [3] and vectors.dtype == np.float16
    np.testing.assert_allclose(vectors[0], vector("a", 3) / np.linalg.norm(vector("a", 3)), atol=1e-3)


def test_lists_and_scopes(opened: Open) -> None:
    store = opened()
    play(store, "left/1", (1, 2), session="monday")
    play(store, "left/2", (1,), "fetch it", session="monday")
    key = play(store, "right/1", (4,))
    store.keep_frames(key, [keyframe("right/1", 7, "Pick 50%_cookies", nominated=False)])
    assert [(r.robot, r.sessions, r.episodes, r.keyframes) for r in store.robots()] == [
        ("right", 1, 1, 2),
        ("left", 1, 2, 3),
    ]
    assert store.robots()[1].image_bytes == sum(
        len(store.images.read(k.key, k.step, camera)) for k in store.keyframes(Scope(robot="left")) for camera in (0, 1)
    )
    [monday] = store.sessions("left")
    assert (monday.session, monday.episodes, monday.tasks) == ("monday", 2, ("find it", "fetch it"))
    assert [one.session for one in store.sessions()] == ["right/1", "monday"]

    def steps(**scope: object) -> list[tuple[str, int]]:
        return sorted((k.episode_id, k.step) for k in store.keyframes(Scope(**scope)))  # type: ignore[arg-type]

    assert steps(robot="left") == [("left/1", 1), ("left/1", 2), ("left/2", 1)]
    assert steps(task="fetch it") == steps(episode_id="left/2") == [("left/2", 1)]
    assert steps(robot="left", without_episode="left/1") == [("left/2", 1)]
    assert steps(subtask="50%_COOK") == steps(nominated=False) == [("right/1", 7)]
    assert steps(subtask="_") == [("right/1", 7)]  # no wildcard
    began = store.find("right/1")
    assert began is not None and began.began_s is not None
    assert steps(after_s=began.began_s) == [("right/1", 4), ("right/1", 7)]
    assert len(steps(before_s=began.began_s)) == 3
    assert len(store.keyframes(limit=2)) == 2


def test_an_episode_belongs_to_who_took_it_over_last(opened: Open) -> None:
    store, other = opened(), opened()
    key = play(store, "arm/1")
    assert store.owns(key) and not other.owns(key)
    with pytest.raises(NotOwner):
        other.keep_frames(key, [keyframe("arm/1", 20)])
    assert other.take_over("arm/1") is not None and other.take_over("nobody's") is None
    for write in (
        lambda: store.keep_frames(key, [keyframe("arm/1", 20)]),
        lambda: store.keep_failure(key, StoredFailure(1, "", "", 1.0, None)),
        lambda: store.keep_piece(key, 1.0, b""),
    ):
        with pytest.raises(NotOwner, match="another server"):
            write()
    other.keep_frames(key, [keyframe("arm/1", 20)])
    new = store.begin("arm/1", "find it")
    assert new != key and store.owns(new) and not other.owns(key)
    assert [k.key for k in store.keyframes()] == []


def test_what_cannot_be_kept_changes_nothing(opened: Open) -> None:
    store = opened()
    key = play(store, "arm/1", (1,))
    before = store.find("arm/1"), store.keyframes(), store.models()
    for vectors, why in (
        ({MODEL: np.zeros(16)}, "finite numbers that are not all 0"),
        ({MODEL: np.full(16, np.nan)}, "finite numbers"),
        ({MODEL: np.ones(8)}, "have 16 dimensions, this one has 8"),
        ({"": np.ones(8)}, "model: expected 1 to 200 letters"),
    ):
        with pytest.raises(StoreError, match=why):
            store.keep_frames(key, [keyframe("arm/1", 2), NewKeyframe(frame("arm/1", 3), embeddings=vectors)])
    assert (store.find("arm/1"), store.keyframes(), store.models()) == before
    store.keep_frames(key, [keyframe("arm/1", 2)])  # the images that were written on trial are in nobody's way
    assert_images(store, key, "arm/1", 2)
    with pytest.raises(StoreError, match="robot: expected 1 to 200"):
        store.begin("x", "find it", robot="a\nb")


def test_notes(opened: Open) -> None:
    store = opened()
    play(store, "arm/1", session="monday")
    store.note("the drawer sticks", "arm", author="Ann")
    store.note("rehearsal", "arm", "monday")
    store.note("slipped", "arm", episode_id="arm/1")
    assert [(n.session, n.episode_id, n.author, n.text) for n in store.notes("arm")] == [
        (None, None, "Ann", "the drawer sticks"),
        ("monday", None, "", "rehearsal"),
        ("monday", "arm/1", "", "slipped"),
    ]
    assert [n.text for n in store.notes("arm", "monday")] == ["rehearsal", "slipped"]
    with pytest.raises(StoreError, match=r"no robot 'leg'; the last ones are: arm"):
        store.note("x", "leg")
    with pytest.raises(StoreError, match=r"no session 'x'; the last ones are: monday"):
        store.note("x", "arm", "x")
    with pytest.raises(StoreError, match="no episode 'arm/2'"):
        store.note("x", "arm", episode_id="arm/2")


def test_readers_do_not_wait_for_a_writer(opened: Open) -> None:
    """While a transaction is open, others read what was there before, in other threads and other stores."""
    store, other = opened(), opened()
    key = play(store, "arm/1", (1,))
    with store.database.writing() as write:
        write("UPDATE episodes SET instruction = 'changed' WHERE id = ?", (key,))
        seen: list[object] = []
        threads = [threading.Thread(target=lambda s=s: seen.append(s.find("arm/1"))) for s in (store, other)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(5)
        assert [episode.instruction for episode in seen] == ["find it"] * 2  # type: ignore[attr-defined]
    assert store.episodes()[0]["instruction"] == "changed"


def test_many_threads_write_at_once(opened: Open) -> None:
    store = opened()
    failed: list[BaseException] = []

    def work(name: str) -> None:
        try:
            key = store.begin(name, "find it")
            for step in range(10):
                store.keep(key, Plan(name, step, "look", (step,)), {step: frame(name, step)})
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=work, args=(f"arm-{n % 2}/{n}",)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert failed == []
    for n in range(6):
        assert len(store.keyframes(Scope(episode_id=f"arm-{n % 2}/{n}"))) == 10


def test_a_closed_store_says_so(opened: Open) -> None:
    store = opened()
    store.close()
    with pytest.raises(StoreFault, match="is closed"):
        store.episodes()


def test_places_that_cannot_be_used(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match=r"cannot be used: .*; choose another --state-dir"):
        open_store(tmp_path / "file" / "state")
    with pytest.raises(StoreError, match="holds no memory store"):
        open_store(tmp_path / "nothing", must_exist=True)
    assert not (tmp_path / "nothing").exists()


@pytest.mark.needs("postgres")
def test_a_database_that_cannot_be_reached() -> None:
    with pytest.raises(StoreError, match=r"cannot be used: .*; see whether it runs and lets you in") as error:
        open_store("postgresql://me:secret@127.0.0.1:1/nothing")
    assert "secret" not in str(error.value)

"""Episodes on disk: what comes back is what was there."""

from __future__ import annotations

import os
import resource
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from threading import Timer
from typing import Literal

import numpy as np
import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from memory_bank import MemoryConfig
from memory_bank.store import MemoryStore, NotOwner, StoreError
from predimem.core.types import Frame, Observation, Plan
from predimem.serving.bank import SessionBank, restore
from predimem.serving.config import StateConfig
from predimem.serving.page.past import history
from predimem.serving.store import open_state

CONFIG = StateConfig(sync=False, episodes=3)
MEMORY = MemoryConfig(recent_window=3, recent_stride_steps=2, cluster_gap_steps=2, history_steps=20)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[MemoryStore]:
    made = open_state(tmp_path, CONFIG)
    yield made
    made.close()


def image(step: int) -> np.ndarray:
    return np.random.default_rng(step).integers(0, 256, (6, 5, 3), np.uint8)


def frame(step: int) -> Frame:
    return Frame(step, step / 20, {"b": image(step), "a": image(1000 + step)})


def plan(step: int, *keyframes: int, subtask: str | None = "go") -> Plan:
    return Plan("e", step, subtask, keyframes, "{}", confidence=0.5)


def test_images_and_plans_come_back_whole(store: MemoryStore, tmp_path: Path) -> None:
    key = store.begin("e", "do it")
    store.keep(key, plan(4, 2, 3), {2: frame(2), 3: frame(3)})
    store.keep(key, plan(7, subtask=None), {3: frame(3), 7: frame(7)})
    other = open_state(tmp_path, CONFIG)  # as after a kill: the first one was never closed
    found = other.find("e")
    assert found is not None and (found.instruction, found.image_steps) == ("do it", (2, 3, 7))
    assert [(p.step, p.subtask, p.keyframe_steps) for p in found.plans] == [(4, "go", (2, 3)), (7, None, ())]
    back = other.frame(key, 3)
    assert (back.step, back.time_s) == (3, 0.15)
    for name, image in frame(3).images.items():
        np.testing.assert_array_equal(back.images[name], image)
    with pytest.raises(KeyError):
        other.frame(key, 4)
    other.close()


def test_an_episode_that_begins_again_forgets(store: MemoryStore) -> None:
    old = store.begin("e", "do it")
    store.keep(old, plan(1, 1), {1: frame(1)})
    new = store.begin("e", "do something else")
    found = store.find("e")
    assert found is not None and (found.key, found.instruction, found.plans) == (new, "do something else", ())
    assert not store.image_file(old, 1, 0).exists()
    assert store.find("other") is None


def test_the_least_used_episodes_go(store: MemoryStore) -> None:
    keys = {name: store.begin(name, "do it") for name in ("a", "b", "c")}
    store.keep(keys["a"], plan(1, 1), {1: frame(1)})
    for key in keys.values():
        store.leave(key)
    store.begin("d", "do it")
    assert {episode["episode_id"] for episode in store.episodes()} == {"a", "c", "d"}


def test_folders_that_cannot_be_used(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="choose another --state-dir"):
        open_state(tmp_path / "file" / "state", CONFIG)
    (tmp_path / "episodes.db").write_text("no database " * 100)
    with pytest.raises(StoreError, match="cannot be used"):
        open_state(tmp_path, CONFIG)


def test_a_image_that_cannot_be_written_keeps_the_plan_out(store: MemoryStore) -> None:
    key = store.begin("e", "do it")
    store.image_file(key, 1, 0).parent.parent.mkdir(parents=True, exist_ok=True)
    store.image_file(key, 1, 0).parent.write_text("in the way")
    with pytest.raises(OSError):
        store.keep(key, plan(1, 1), {1: frame(1)})
    found = store.find("e")
    assert found is not None and found.plans == ()


def test_an_image_that_was_cut_short_is_written_anew(store: MemoryStore) -> None:
    """As on a full disk: no file may be longer than 50 bytes."""
    key, limits = store.begin("e", "do it"), resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (50, limits[1]))
    try:
        with pytest.raises(OSError):
            store.keep(key, plan(1, 1), {1: frame(1)})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert not store.image_file(key, 1, 0).exists()
    store.keep(key, plan(1, 1), {1: frame(1)})
    for name, expected in frame(1).images.items():
        np.testing.assert_array_equal(store.frame(key, 1).images[name], expected)


def test_images_are_on_the_disk_before_they_have_their_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a power cut there is the whole image or none, and a plan only with its images."""
    store = open_state(tmp_path, replace(CONFIG, sync=True))
    key, synced, sync = store.begin("e", "do it"), [], os.fsync

    def note(handle: int) -> None:
        path = Path(os.readlink(f"/proc/self/fd/{handle}"))
        found = store.find("e")
        assert found is not None and found.plans == () and found.image_steps == ()
        if path.is_dir():
            synced.append((path.relative_to(tmp_path).as_posix(), sorted(f.name for f in path.glob("*.png"))))
        else:
            synced.append((path.name.split(".")[0], path.suffix, path.stat().st_size))
        sync(handle)

    monkeypatch.setattr(os, "fsync", note)
    store.keep(key, plan(3, 3), {3: frame(3)})
    sizes = [store.image_file(key, 3, camera).stat().st_size for camera in (0, 1)]
    assert synced == [
        ("pictures", []),
        (".", []),
        ("3-0", ".part", sizes[0]),
        ("3-1", ".part", sizes[1]),
        (f"pictures/{key}", ["3-0.png", "3-1.png"]),
    ]
    found = store.find("e")
    assert found is not None and found.image_steps == (3,)
    with store.database.reading() as read:
        assert read("PRAGMA synchronous") == [(2,)]  # SQLite's FULL: of each transaction
    store.close()


def test_a_restored_bank_has_the_last_images_of_the_window(store: MemoryStore) -> None:
    """What the planner was shown last, nominated or not, is there; what had left the window is not."""
    key = store.begin("e", "do it")
    for step in (2, 10, 14):
        store.keep(key, replace(plan(step), next_subtasks=("wait",) * (step == 14)), {step: frame(step)})
    found, bank, resumed = store.find("e"), SessionBank(MEMORY), []
    assert found is not None
    bank.reset("e", "do it")
    restore(bank, resumed.append, store, found, 1)
    assert [p.step for p in resumed] == [2, 10, 14]
    assert [p.next_subtasks for p in resumed] == [(), (), ("wait",)]
    recent = bank.snapshot().recent
    assert [f.step for f in recent] == [10, 12, 14] and bank.last_step == 14
    for shown, source in zip(recent, (10, 10, 14), strict=True):  # the last image before holds
        np.testing.assert_array_equal(shown.images["a"], image(1000 + source))
    assert bank.frame(2) is None and bank.keyframe_steps == ()


@pytest.mark.parametrize("lost", [False, True])
def test_an_image_that_is_damaged_or_lost_does_not_keep_the_rest_from_coming_back(
    store: MemoryStore, lost: bool
) -> None:
    key = store.begin("e", "do it")
    store.keep(key, plan(4, 2, 4), {2: frame(2), 4: frame(4)})
    store.keep(key, plan(30), {30: frame(30)})
    file = store.image_file(key, 2, 0)
    if lost:
        file.unlink()
    else:
        file.write_bytes(file.read_bytes()[:40])
    found, bank = store.find("e"), SessionBank(MEMORY)
    assert found is not None
    bank.reset("e", "do it")
    restore(bank, lambda plan: bank.nominate(plan.keyframe_steps), store, found, 1)
    assert bank.keyframe_steps == (4,) and bank.last_step == 30


@hypothesis_settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_a_restored_bank_remembers_the_same(store: MemoryStore, data: st.DataObject) -> None:
    """Whatever was nominated when, the keyframes after a restart are those before it, images included."""
    key, bank = store.begin("e", "do it"), SessionBank(replace(MEMORY, history_steps=1000))
    bank.reset("e", "do it")
    for step in range(data.draw(st.integers(1, 60))):
        bank.observe(Observation(step, dict(frame(step).images), np.zeros(1, np.float32), step / 20))
        if data.draw(st.booleans()):
            recent = bank.snapshot().recent
            chosen = data.draw(st.lists(st.sampled_from(recent), max_size=2, unique=True))
            nominated = tuple(sorted(f.step for f in chosen))
            store.keep(key, plan(step, *nominated), {f.step: f for f in chosen} | {step: recent[-1]})
            bank.announce(nominated)
            bank.nominate(nominated)
    found = store.find("e")
    assert found is not None
    again = SessionBank(bank.config)
    again.reset("e", "do it")
    restore(again, lambda p: again.nominate(p.keyframe_steps), store, found, 1)
    assert again.keyframe_steps == bank.keyframe_steps
    if found.plans:
        shown = {f.step: f for f in again.snapshot().keyframes}
        for step, kept in shown.items():
            np.testing.assert_array_equal(kept.images["a"], image(1000 + step))


def test_a_bank_fills_the_steps_between_observations() -> None:
    bank = SessionBank(MEMORY)
    bank.reset("e", "do it")
    for step in (0, 4, 4, 8, 1000):
        bank.observe(Observation(step, {"a": image(step)}, np.zeros(1, np.float32), step / 20))
    recent = bank.snapshot().recent
    assert [f.step for f in recent] == [996, 998, 1000]
    assert recent[0].images["a"] is recent[1].images["a"]  # the last image before holds
    np.testing.assert_array_equal(recent[0].images["a"], image(8))
    np.testing.assert_array_equal(recent[2].images["a"], image(1000))
    with pytest.raises(ValueError, match="in order"):
        bank.observe(Observation(999, {"a": image(0)}, np.zeros(1, np.float32)))


def test_no_nomination_is_lost_where_two_answers_come_at_once() -> None:
    bank = SessionBank(MEMORY)
    bank.reset("e", "do it")
    for step in range(20):
        bank.observe(Observation(step, {"a": image(step)}, np.zeros(1, np.float32)))
    bank.announce((3,))
    bank.announce((11,))
    bank.nominate((11,))  # the agent saw the second answer alone
    bank.announce((18,))
    bank.nominate((18,))
    assert bank.keyframe_steps == (3, 11, 18)


def test_an_episode_belongs_to_who_took_it_over_last(store: MemoryStore, tmp_path: Path) -> None:
    """A server that was cut off, and comes back, can add nothing to what another one goes on with."""
    key = store.begin("e", "do it")
    store.keep(key, plan(1, 1), {1: frame(1)})
    other = open_state(tmp_path, CONFIG)
    with pytest.raises(NotOwner):
        other.keep(key, plan(2), {2: frame(2)})
    found = other.take_over("e")
    assert found is not None and (found.key, found.image_steps) == (key, (1,))
    assert other.owns(key) and not store.owns(key)
    with pytest.raises(NotOwner, match="another server"):
        store.keep(key, plan(3, 3), {3: frame(3)})
    other.keep(key, plan(4), {4: frame(4)})
    anew = store.begin("e", "do it")
    assert not other.owns(key) and store.owns(anew)
    found = store.take_over("e")
    assert found is not None and found.plans == ()
    assert store.take_over("nobody's") is None
    other.close()


def test_a_folder_that_another_process_is_just_setting_up(tmp_path: Path) -> None:
    other = sqlite3.connect(tmp_path / "episodes.db", isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")
    since = time.monotonic()
    release = Timer(0.5, other.rollback)
    release.start()
    open_state(tmp_path, replace(CONFIG, journal="wal")).close()
    assert time.monotonic() - since >= 0.5, "the folder was opened although the other one held the lock"
    release.join()
    other.close()


WRITE = """
import sys
from tests.serving.test_store import *
folder, journal, name = sys.argv[1:]
store = open_state(folder, replace(CONFIG, episodes=50, journal=journal))
key = store.begin(name, "do it")
for step in range(12):
    store.keep(key, plan(step, step), {step: frame(step)})
    print(step, flush=True)
    if name == "killed" and step == 7:
        os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.slow
@pytest.mark.parametrize("journal", ["wal", "rollback"])
def test_processes_share_a_folder(tmp_path: Path, journal: Literal["wal", "rollback"]) -> None:
    """Three write at once, and one of them is killed: what each was told to be kept is there."""
    names = ("a", "b", "killed")
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITE, str(tmp_path), journal, name], stdout=subprocess.PIPE, env=environment
        )
        for name in names
    ]
    kept = [len(writer.communicate(timeout=120)[0].split()) for writer in writers]
    assert [writer.returncode for writer in writers] == [0, 0, -signal.SIGKILL] and kept == [12, 12, 8]
    store = open_state(tmp_path, replace(CONFIG, episodes=50, journal=journal))
    for name, count in zip(names, kept, strict=True):
        found = store.take_over(name)
        assert found is not None and [p.step for p in found.plans] == list(range(count))
        for step in found.image_steps:
            np.testing.assert_array_equal(store.frame(found.key, step).images["a"], image(1000 + step))
    store.close()


def test_a_memory_of_ones_own_gets_back_what_was_kept(store: MemoryStore) -> None:
    """Its keyframes are stored once each, though nobody nominated them, and it observes them again."""
    memory = replace(MEMORY, implementation="tests.memory_bank.own_memories:Sound")
    key, bank = store.begin("e", "do it"), SessionBank(memory)
    bank.reset("e", "do it")
    kept: list[int] = []
    for step in range(50):
        bank.observe(Observation(step, dict(frame(step).images), np.zeros(1, np.float32), step / 20))
        if step % 7 == 6:
            frames = bank.to_keep(bank.snapshot())
            kept += frames
            store.keep(key, plan(step), frames)
            bank.announce((), frames)
            bank.nominate(())
    assert kept == [0, 20, 40]
    found = store.find("e")
    assert found is not None
    again = SessionBank(memory)
    again.reset("e", "do it")
    restore(again, lambda p: again.nominate(p.keyframe_steps), store, found, 1)
    assert again.keyframe_steps == (0, 20) and again.last_step == 40
    np.testing.assert_array_equal(again.snapshot().keyframes[1].images["a"], image(1020))
    assert [(h.step, h.keyframes) for h in history(found, memory, store)] == [(20, (0,)), (41, (0, 20))]

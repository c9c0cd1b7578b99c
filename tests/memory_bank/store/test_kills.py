"""kill -9 at any moment of writing: what was acknowledged is there, and nothing is there by half."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from memory_bank.store import MemoryStore, Scope, StoredFailure, import_session, open_store
from predimem.core.types import Plan
from tests.memory_bank.store.made_up import MODEL, assert_images, frame, keyframe, play, vector

ROOT = Path(__file__).parents[3]
WRITER = "from tests.memory_bank.store.test_kills import write; import sys; write(sys.argv[1], sys.argv[2])"


def write(folder: str, run: str) -> None:
    """Write until killed; a line for each thing that is acknowledged. One episode in five is deleted again."""
    store = open_store(folder)
    say("opened")
    for number in range(1_000_000):
        name = f"arm-{number % 3}/{run}-{number}"
        key = store.begin(name, f"task {number % 2}")
        say("begun", name)
        for step in range(0, 12, 2):
            frames, embeddings = {step: frame(name, step)}, {step: {MODEL: vector(name, step)}}
            store.keep(key, Plan(name, step, f"subtask {step}", (step,)), frames, embeddings=embeddings)
            say("kept", name, step)
        store.keep_frames(key, [keyframe(name, step) for step in (101, 102, 103)])
        say("many", name)
        store.keep_failure(key, StoredFailure(200, "no JSON", "{", 1.0, None))
        store.search(vector(name, 2), 3, model=MODEL)  # the files beside the database are written, too
        if number % 5 == 4:
            say("deleting", name)
            store.delete(name.partition("/")[0], episode_id=name)
            say("deleted", name)


def say(*words: object) -> None:
    os.write(1, (" ".join(map(str, words)) + "\n").encode())


def check(store: MemoryStore, said: list[list[str]]) -> int:
    """All that was said is true, and all that is kept is whole; how many keyframes there are."""
    gone = {name for word, *rest in said if word in ("deleting", "deleted") for name in rest}
    for word, *rest in said:
        if word == "deleted":
            assert store.find(rest[0]) is None
        elif word in ("begun", "kept", "many") and rest[0] not in gone:
            found = store.find(rest[0])
            assert found is not None, rest
            if word == "kept":
                assert int(rest[1]) in found.image_steps and int(rest[1]) in {plan.step for plan in found.plans}
            if word == "many":
                assert {101, 102, 103} <= set(found.image_steps)
    kept, vectors = store.embeddings(MODEL)
    assert {k.id for k in kept} == {k.id for k in store.keyframes()}
    for one, embedding in zip(kept, vectors, strict=True):
        assert_images(store, one.key, one.episode_id, one.step)
        expected = vector(one.episode_id, one.step)
        assert embedding.astype(float) @ expected > 0.999 * (expected @ expected) ** 0.5
    for episode in store.episodes():
        steps = {k.step for k in store.keyframes(Scope(episode_id=episode["episode_id"]))}
        assert len({101, 102, 103} & steps) in (0, 3)  # a batch is there or not
    return len(kept)


def check_search(store: MemoryStore) -> None:
    """Searches see what the database has, whatever the kill did to their files."""
    for one in store.keyframes(limit=20):
        [hit] = store.search(vector(one.episode_id, one.step), 1, model=MODEL)
        assert hit.keyframe == one and hit.similarity > 0.999
    assert len(store.search(vector("x", 1), 10**6, model=MODEL)) == len(store.keyframes())


def kills(folder: Path, count: int) -> tuple[int, int]:
    """(acknowledgements, keyframes at the end)."""
    rng, acknowledged, keyframes = random.Random(count), 0, 0
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    said: list[list[str]] = []
    for run in range(count):
        command = [sys.executable, "-c", WRITER, str(folder), str(run)]
        writer = subprocess.Popen(command, stdout=subprocess.PIPE, env=environment, text=True)
        assert writer.stdout is not None and writer.stdout.readline() == "opened\n"
        time.sleep(rng.uniform(0.0, 0.4))
        writer.send_signal(signal.SIGKILL)
        lines = writer.communicate()[0].splitlines()
        assert writer.returncode == -signal.SIGKILL
        said += [line.split() for line in lines]
        acknowledged += len(lines)
        if run % 10 == 9 or run == count - 1:
            store = open_store(folder)
            keyframes = check(store, said)
            if keyframes:
                check_search(store)
            folders = {int(path.name) for path in (folder / "pictures").iterdir()}
            with store.database.reading() as read:
                assert folders <= {key for (key,) in read("SELECT id FROM episodes")}  # no files of what is gone
            store.close()
    return acknowledged, keyframes


@pytest.mark.slow
def test_eight_kills(tmp_path: Path) -> None:
    acknowledged, keyframes = kills(tmp_path, 8)
    assert acknowledged > 8 and keyframes > 8


@pytest.mark.slow
def test_a_hundred_kills(tmp_path: Path) -> None:
    acknowledged, keyframes = kills(tmp_path, 100)
    assert acknowledged > 500 and keyframes > 300


def test_a_kill_between_store_and_index(tmp_path: Path) -> None:
    """The database has what the files of the search have not, and the other way round nothing."""
    store = open_store(tmp_path)
    play(store, "arm/1", range(5))
    check_search(store)
    head = (tmp_path / "index/1/head.json").read_bytes()
    play(store, "arm/2", range(5))
    check_search(store)
    (tmp_path / "index/1/head.json").write_bytes(head)  # the kill came before the head was replaced
    store.close()
    again = open_store(tmp_path)
    check_search(again)
    again.close()


IMPORTER = """
import os, sys
from pathlib import Path
from memory_bank.store import import_session, open_store
store = open_store(sys.argv[1])
os.write(1, b"opened\\n")
for number in range(1000):
    import_session(store, Path(sys.argv[2]), session=f"{sys.argv[3]}-{number}")
    os.write(1, b"imported\\n")
"""


def test_an_import_that_is_killed_is_there_or_not(tmp_path: Path) -> None:
    from memory_bank.store import export_session

    source = open_store(tmp_path / "source", sync=False)
    play(source, "arm/1", range(8), session="monday")
    play(source, "arm/2", range(8), session="monday")
    export_session(source, "arm", "monday", tmp_path / "file")
    source.close()
    done = 0
    for run in range(5):
        command = [sys.executable, "-c", IMPORTER, str(tmp_path / "store"), str(tmp_path / "file"), str(run)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, env=os.environ | {"PYTHONPATH": str(ROOT)})
        assert process.stdout is not None and process.stdout.readline() == b"opened\n"
        time.sleep(random.Random(run).uniform(0.05, 0.3))
        process.kill()
        done += len(process.communicate()[0].split())
    store = open_store(tmp_path / "store")
    sessions = store.sessions("arm")
    assert done <= len(sessions) <= done + 5
    assert {(s.episodes, s.keyframes) for s in sessions} <= {(2, 16)}
    for one in store.keyframes():
        assert_images(store, one.key, one.episode_id.partition("-")[0], one.step)
    import_session(store, tmp_path / "file", session="after")
    store.close()

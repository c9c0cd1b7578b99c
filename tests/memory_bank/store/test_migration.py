"""Folders of earlier versions open, and nothing of them is lost."""

from __future__ import annotations

import shutil
import sqlite3
import zipfile
from pathlib import Path

import numpy as np
import pytest

from memory_bank.store import Scope, StoreError, open_store
from memory_bank.store.schema import VERSION
from predimem.serving.trajectory import rows_of

WRITTEN = Path(__file__).parent / "state_of_version_2.zip"  # by the last server whose folders had version 2


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with zipfile.ZipFile(WRITTEN) as archive:
        archive.extractall(tmp_path / "state")
    return tmp_path / "state"


def tables(folder: Path) -> dict[str, list[str]]:
    """table -> its columns."""
    database = sqlite3.connect(folder / "episodes.db")
    names = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    found = {name: sorted(row[1] for row in database.execute(f"PRAGMA table_info({name})")) for name in names}
    database.close()
    return found


def test_a_folder_of_version_2(folder: Path) -> None:
    store = open_store(folder, sync=False)
    assert sorted((r.robot, r.episodes, r.keyframes) for r in store.robots()) == [("robot-7", 2, 9), ("unnamed", 1, 1)]
    first = store.find("robot-7/2041")
    assert first is not None and first.instruction == "put the cookies into the top drawer"
    assert (first.robot, first.session, first.outcome) == ("robot-7", "robot-7/2041", "success")
    assert [(p.step, p.subtask, p.keyframe_steps, p.confidence, p.latency_s) for p in first.plans] == [
        (0, "open top drawer", (), 0.75, 0.25),
        (20, "open top drawer", (4, 18), 0.75, 0.25),
        (40, "pick cookies", (18, 36), 0.75, 0.25),
    ]
    assert [(f.step, f.error) for f in first.failures] == [(45, "no JSON")]
    assert first.image_steps == (0, 4, 18, 20, 36, 40)
    kept = store.keyframes(Scope(episode_id="robot-7/2041"))[::-1]
    assert [(k.step, k.subtask, k.nominated) for k in sorted(kept, key=lambda k: k.step)] == [
        (0, "open top drawer", False),
        (4, "open top drawer", True),
        (18, "open top drawer", True),
        (20, "open top drawer", False),
        (36, "pick cookies", True),
        (40, "pick cookies", False),
    ]
    for step in first.image_steps:
        for number, camera in enumerate(("agentview", "hand")):
            np.testing.assert_array_equal(
                store.frame(first.key, step).images[camera], np.full((4, 4, 3), step * 3 + number, np.uint8)
            )
    rows = rows_of(store, first.key)
    assert rows is not None and rows.steps.tolist() == [0, 20, 40] and rows.state[2].tolist() == [40, 41, 42]
    files = [path.stat().st_size for path in (folder / "pictures").rglob("*.png")]
    assert sum(robot.image_bytes for robot in store.robots()) == sum(files)
    store.delete("robot-7")
    assert [path.name for path in (folder / "pictures").iterdir()] == ["3"]
    store.close()


def test_its_tables_are_those_of_a_new_store(folder: Path, tmp_path: Path) -> None:
    open_store(folder, sync=False).close()
    open_store(tmp_path / "new", sync=False).close()
    assert tables(folder) == tables(tmp_path / "new")


def test_a_migration_that_fails_leaves_the_folder_as_it_was(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = tables(folder)
    monkeypatch.setattr("memory_bank.store.schema._keyframes_of_2", lambda *a: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        open_store(folder, sync=False)
    monkeypatch.undo()
    assert tables(folder) == before
    store = open_store(folder, sync=False)
    assert len(store.episodes()) == 3
    store.close()


def test_a_store_of_a_later_version_is_refused(folder: Path, tmp_path: Path) -> None:
    open_store(folder, sync=False).close()
    database = sqlite3.connect(folder / "episodes.db")
    database.execute(f"PRAGMA user_version = {VERSION + 1}")
    database.close()
    shutil.copytree(folder, tmp_path / "copy")
    with pytest.raises(StoreError, match=rf"another version \({VERSION + 1}\); this one reads up to {VERSION}"):
        open_store(folder)
    assert tables(folder) == tables(tmp_path / "copy")

"""Cells of results are called `<task>-<condition>`, and the benchmark knows them wherever it knows a task."""

from __future__ import annotations

from pathlib import Path

import pytest

from predimem.envs.arena.benchmark import ARENA
from predimem.envs.arena.tasks import TASKS, task_of
from predimem.envs.arena.unseen.conditions import CONDITIONS
from predimem.evaluation.run.config import evaluation_settings
from predimem.evaluation.run.names import task_files

ROOT = Path(__file__).parents[4]
EXAMPLE = str(next(path for path in (ROOT / "examples").glob("*.py") if "TASK = Task(" in path.read_text()))


def test_a_condition_stands_behind_a_task() -> None:
    name = "ButterInOccupiedDrawer-camera"
    for key in ("4-camera", name, "predimem/Arena-ButterInOccupiedDrawer-v0-camera"):
        assert ARENA.task_name(key) == name
    assert ARENA.task_name("4-plain") == "ButterInOccupiedDrawer-plain"
    assert ARENA.task_name("4") == "ButterInOccupiedDrawer"
    assert ARENA.horizon(name) == task_of(4).horizon and ARENA.subtasks(name) == ARENA.subtasks("4")
    assert "(unseen: where the camera stands and looks)" in ARENA.describe("4-camera")
    assert ARENA.task_file(name) is None and task_files("arena", [name, "4"]) == {}
    for wrong in ("4-camra", "99-camera"):
        with pytest.raises(ValueError, match="unknown arena task"):
            ARENA.task_name(wrong)


def test_tasks_are_played_in_each_condition() -> None:
    names = ARENA.in_conditions(("4", "18"), ("plain", "lights"))
    assert names == tuple(f"{task_of(t).name}-{c}" for c in ("plain", "lights") for t in (4, 18))
    assert len(ARENA.in_conditions((), tuple(CONDITIONS))) == 26 * 8
    with pytest.raises(ValueError, match="unknown condition 'k7'; the arena has: plain, positions"):
        ARENA.in_conditions((), ("k7",))
    with pytest.raises(ValueError, match="unknown arena task '4-camera'"):
        ARENA.in_conditions(("4-camera",), ("lights",))
    with pytest.raises(ValueError, match="not for tasks of a file"):
        ARENA.task_name(f"{EXAMPLE}-camera")
    with pytest.raises(ValueError, match="not for tasks of a file"):
        ARENA.in_conditions((EXAMPLE,), ("camera",))


def test_conditions_are_categories_of_their_own() -> None:
    found = ARENA.categories(["4-camera", "18-camera", "4-plain", "10"])
    assert found["camera"] == [f"{task_of(4).name}-camera", f"{task_of(18).name}-camera"]
    assert found["plain"] == [f"{task_of(4).name}-plain"] and "lights" not in found
    assert sum(len(found[c]) for c in ("transferring", "occlusion", "counting", "sequence")) == len(TASKS)


def test_the_file_names_all_conditions_and_an_option_chooses() -> None:
    path = ROOT / "configs/eval/arena_unseen.yaml"
    settings = evaluation_settings(path, {})
    assert settings.benchmark == "arena" and settings.conditions == tuple(CONDITIONS)
    assert evaluation_settings(path, {"conditions": ["camera"]}).conditions == ("camera",)
    assert evaluation_settings(None, {"benchmark": "arena"}).conditions == ()

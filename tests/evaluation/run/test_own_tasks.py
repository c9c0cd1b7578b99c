"""Evaluations of tasks of one's own: what a planner was never trained to say, and results that hold the task's file."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from predimem.core.config import ConfigError
from predimem.envs.benchmark import load_benchmark
from predimem.evaluation.run.config import PlayConfig, evaluation_settings
from predimem.evaluation.run.task_records import task_record, write_task_files
from predimem.evaluation.run.unseen import unseen_labels

ROOT = Path(__file__).parents[3]
EXAMPLE = str(ROOT / "examples" / "juice_beside_cookies.py")


@pytest.fixture
def play() -> PlayConfig:
    settings = evaluation_settings(ROOT / "configs" / "eval" / "arena.yaml", {})
    names = ("predimem-skills", "oracle-memory", "reactive")
    return replace(settings.play, agent_configs={name: settings.agent_configs[name] for name in names})


def test_a_planner_says_what_it_was_not_trained_for(play: PlayConfig) -> None:
    arena = load_benchmark("arena")
    (said,) = unseen_labels(arena, [EXAMPLE, "4"], play)
    assert said.startswith(
        "predimem-skills: its planner arena-planner was not trained for JuiceBesideCookies and cannot"
    )
    assert "cannot name 5 of its 6 subtasks (place cookies onto mat: basket left; pick juice; " in said
    assert f"`predimem train arena --continue --tasks {EXAMPLE}` trains on for it" in said
    assert unseen_labels(arena, arena.all_tasks(), play) == []


def test_a_planner_that_was_trained_for_it_says_nothing(play: PlayConfig, tmp_path: Path) -> None:
    shipped = json.loads((ROOT / "predimem" / "weights" / "arena-planner" / "predimem.json").read_text())
    tokenizer = shipped["training"]["config"]["base"]["tokenizer"]
    tokenizer["subtasks"] += load_benchmark("arena").subtasks(EXAMPLE)
    (tmp_path / "arena-planner").mkdir()
    (tmp_path / "arena-planner" / "predimem.json").write_text(json.dumps(shipped))
    assert unseen_labels(load_benchmark("arena"), [EXAMPLE], replace(play, weights=str(tmp_path))) == []


def test_results_hold_the_files_of_tasks(tmp_path: Path) -> None:
    records = {"JuiceBesideCookies": task_record(EXAMPLE)}
    files = write_task_files(records, tmp_path, "results.json")
    assert Path(files["JuiceBesideCookies"]).read_bytes() == Path(EXAMPLE).read_bytes()
    altered = {"JuiceBesideCookies": records["JuiceBesideCookies"] | {"text": "TASK = None"}}
    with pytest.raises(ConfigError, match="JuiceBesideCookies in it does not match its hash"):
        write_task_files(altered, tmp_path, "results.json")
    with pytest.raises(ConfigError, match="made by an earlier version and does not hold the file"):
        write_task_files({"JuiceBesideCookies": "ab" * 32}, tmp_path, "results.json")

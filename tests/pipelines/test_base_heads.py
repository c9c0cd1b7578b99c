"""`predimem train base`, and what it makes played by `predimem eval`: as a user does it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from actor.memory_head.head import load_head
from predimem.pipelines.base_heads import success_rate, teach, train_base

ROOT = Path(__file__).parents[2]


def predimem(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "predimem.cli", *words], capture_output=True, text=True, cwd=ROOT, timeout=500
    )


@pytest.mark.slow
def test_a_head_is_trained_and_played(tmp_path: Path) -> None:
    """It plays the same episodes with the same outcome in `predimem eval` and side by side."""
    weights, out = tmp_path / "weights", tmp_path / "eval"
    made = predimem(
        "train", "base", "--tasks", "MemoryLength10", "--agent", "bank", "--steps", "150", "--out", str(weights)
    )
    assert made.returncode == 0, made.stderr
    words = ["--benchmark", "base", "--tasks", "MemoryLength10,MemoryLength40", "--agents", "bank,random"]
    done = predimem("eval", *words, "--episodes", "6", "--weights", str(weights), "--videos", "1", "--out", str(out))
    assert done.returncode == 0, done.stderr
    written = json.loads((out / "results.json").read_text())
    results, episodes = written["results"], written["episodes"]
    assert set(results) == {"MemoryLength10", "MemoryLength40"} and set(results["MemoryLength10"]) == {"bank", "random"}
    head = load_head(weights / "base" / "MemoryLength" / "bank")
    own = [e["status"] == "success" for e in episodes if (e["task"], e["agent"]) == ("MemoryLength10", "bank")]
    assert sum(own) / 6 == success_rate(head, "MemoryLength10", range(900_000, 900_006)) == 1
    assert "error" not in done.stderr


def test_missing_weights_say_how_to_make_them(tmp_path: Path) -> None:
    words = ["--benchmark", "base", "--tasks", "TMaze10", "--agents", "gru", "--weights", str(tmp_path)]
    done = predimem("eval", *words, "--out", str(tmp_path / "eval"))
    assert done.returncode != 0
    assert "predimem train base --tasks TMaze10 --agents gru" in done.stderr


@pytest.mark.needs("popgym")
def test_only_tasks_with_a_teacher_can_be_trained_for(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="popgym-HigherLowerEasy-v0 has no teacher"):
        teach(["popgym-HigherLowerEasy-v0"])
    with pytest.raises(ValueError, match="unknown agent 'lstm'; those that can be trained are: bank"):
        train_base(["TMaze10"], ["lstm"], tmp_path)


@pytest.mark.slow
def test_the_bank_remembers_over_a_thousand_steps(tmp_path: Path) -> None:
    """The target of the benchmark: a T-maze of 1,000 steps in at least 95 of 100 episodes."""
    tasks = [f"TMaze{delay}" for delay in (10, 30, 100, 300, 1_000)]
    (folder,) = train_base(tasks, ["bank"], tmp_path)
    assert success_rate(load_head(folder), "TMaze1000", range(900_000, 900_100)) >= 0.95

"""`predimem train arena`: it stops and goes on; and all of it once, tiny."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.pipelines.tiny_arena import TINY
from tests.processes import children, is_running

ROOT = Path(__file__).parents[2]


def start(*arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "predimem.cli", *arguments]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


@pytest.mark.parametrize("how", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)])
def test_interrupted_it_ends_with_its_stage(tmp_path: Path, how: signal.Signals) -> None:
    (tmp_path / "tiny.yaml").write_text(TINY)
    process = start("train", "arena", "--config", str(tmp_path / "tiny.yaml"), "--out", str(tmp_path / "out"))
    assert process.stdout is not None and "[1/10] vision-data" in process.stdout.readline()
    while not (running := children(process.pid)):
        time.sleep(0.05)
    process.send_signal(how)
    output, _ = process.communicate(timeout=120)
    assert process.returncode != 0 and "interrupted in vision-data: the same command goes on" in output
    assert not any(map(is_running, running))


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_training_on_for_a_task_of_ones_own(tmp_path: Path) -> None:
    """From a fresh folder with a small config that extends the shipped one; stopped once, it goes on where it was."""
    (tmp_path / "small.yaml").write_text(SMALL_CONTINUATION)
    task = ROOT / "examples" / "juice_beside_cookies.py"
    command = [sys.executable, "-m", "predimem.cli", "train", "arena", "--continue", "--tasks", str(task)]
    command += ["--config", "small.yaml", "--out", "mine"]
    first = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert first.stdout is not None
    while "arena-planner: predimem train" not in (line := first.stdout.readline()):
        assert line, "it ended before it came to the planner"
    time.sleep(2)
    first.send_signal(signal.SIGINT)
    assert "interrupted in arena-planner: the same command goes on" in first.communicate(timeout=300)[0]
    again = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert again.returncode == 0, again.stderr[-3000:]
    assert "dagger-0: is there" in again.stdout and "tokens are new to" in again.stdout
    spec = json.loads((tmp_path / "mine" / "weights" / "arena-planner" / "predimem.json").read_text())
    assert "pick juice" in spec["training"]["config"]["base"]["tokenizer"]["subtasks"]
    evaluate = ["eval", "--config", "configs/eval/arena.yaml", "--weights", "mine/weights", "--tasks", str(task)]
    evaluate += ["--agent", "predimem", "--episodes", "1", "--workers", "1", "--out", "eval"]
    verify = ["eval", "--verify", "eval/results.json", "--sample", "1"]
    for words in (evaluate, verify):
        cli = [sys.executable, "-m", "predimem.cli", *words]
        done = subprocess.run(cli, cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0 and "was not trained for" not in done.stderr, done.stderr[-3000:]


SMALL_CONTINUATION = """
extends: configs/continue_arena.yaml
workers: 1
planners:
  rounds: [{episodes: 2, first_seed: 46000}]
  recipe_changes: {dataset: {samples: 64}}
actor:
  data_changes: {episodes: 2, frames: 2}
  recipe_changes:
    steps: 3
    threads: 1
    val_every: 2
    sampling: {frames_per_batch: 2}
    dagger: {rounds: 1, expert_episodes: 0, episodes: 1, steps: 2}
"""


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_everything_from_nothing_to_an_evaluation(tmp_path: Path) -> None:
    """Every stage for real, with as little of everything as works; then the weights play."""
    (tmp_path / "tiny.yaml").write_text(TINY)
    out = tmp_path / "out"
    arguments = ("train", "arena", "--config", str(tmp_path / "tiny.yaml"), "--out", str(out))
    process = start(*arguments)
    output, _ = process.communicate()
    assert process.returncode == 0, output[-3000:]
    weights = out / "weights"
    assert sorted(p.name for p in weights.iterdir()) == [
        "arena-actor",
        "arena-actor-reactive",
        "arena-planner",
        "arena-planner-recent",
        "arena-planner-untrained",
    ]
    tower = "model-00001-of-00002.safetensors"
    assert (weights / "arena-planner-recent" / tower).readlink() == Path("..", "arena-planner", tower)
    again = subprocess.run(
        [sys.executable, "-m", "predimem.cli", *arguments], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert again.stdout.count("is there") == 10
    agents = ("predimem", "no-keyframes-skills", "no-robot-data-skills")
    evaluated = start(
        "eval", "--config", "configs/eval/arena.yaml", "--weights", str(weights), "--tasks", "6", "--episodes", "1",
        "--agents", ",".join(agents), "--workers", "1", "--out", str(tmp_path / "eval"),
    )  # fmt: skip
    output, _ = evaluated.communicate()
    assert evaluated.returncode == 0, output[-3000:]
    results = json.loads((tmp_path / "eval" / "results.json").read_text())
    assert set(results["provenance"]["agent_configs"]) >= set(agents)
    assert os.environ.get("HF_HUB_OFFLINE") == "1"  # nothing was downloaded

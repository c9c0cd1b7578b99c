"""The command line as a user meets it: in a process of its own, with good and with bad input."""

import json
import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import yaml

from predimem.cli import main
from predimem.core.episode_folder import episode_path
from predimem.core.episode_writer import save_episode
from tests.planner.builders import make_episode

ROOT = Path(__file__).parents[2]


def predimem(*arguments: str, timeout_s: float = 300, env: Any = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "predimem.cli", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=timeout_s, cwd=ROOT, env=env)


@pytest.mark.parametrize(
    "command",
    [
        [],
        ["eval"],
        ["play"],
        ["demo"],
        ["harness"],
        ["datagen"],
        ["doctor"],
        ["train", "planner"],
        ["train", "actor"],
        ["train", "arena"],
    ],
)
def test_every_command_has_help(command):
    result = predimem(*command, "--help")
    assert result.returncode == 0 and "Usage" in result.stdout


def test_help_needs_neither_torch_nor_a_simulator():
    code = (
        "import sys; from predimem.cli.app import app; import typer.testing as t;"
        "t.CliRunner().invoke(app, ['eval', '--help']);"
        "assert not {'torch', 'sapien', 'mani_skill', 'transformers'} & set(sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT).returncode == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["eval", "--tasks", "x", "--agent", "clever"], "unknown agent 'clever'; there are: predimem"),
        (["eval", "--tasks", "x", "--weights", "nowhere"], "no weights for 'planner' in nowhere"),
        (["eval", "--tasks", "x", "--suite", "y"], "unknown benchmark 'y'; there are: mikasa, arena, robomme"),
        (["eval", "--tasks", "x", "--agent", "random", "--episodes", "0"], "episodes: expected at least 1"),
        (["eval", "--agent", "random"], "mikasa: say which --tasks to play"),
        (["eval", "--benchmark", "arena", "--rendering", "fast"], "unknown key 'rendering'; ArenaOptions"),
        (["eval", "--config", "configs/eval/arena.yaml", "--weights", "nowhere"], "no weights for 'arena-planner' in"),
        (["eval", "--config", "configs/eval/arena.yaml", "--agent", "x"], "there are: predimem, no-head, no-keyframes"),
        (["eval", "--config", "configs/eval/arena_studies.yaml", "--tasks", "99"], "left out: window-1: no weights"),
        (["eval", "--config", "nowhere.yaml"], "config file not found: nowhere.yaml"),
        (["eval", "--verify", "results/arena_windows.json"], "no weights for 'arena-planner-window-1' in"),
        (["eval", "--verify", "nowhere.json"], "nowhere.json is no results.json of `predimem eval`"),
        (["eval", "--suite", "arena", "--agent", "oracle", "--tasks", "99"], "unknown arena task '99'"),
        (["eval", "--suite", "arena", "--agent", "oracle", "--tasks", "4,04"], "unknown arena task '04'"),
        (["eval", "--suite", "arena", "--agent", "script", "--seed-start", "-1"], "seed_start: expected at least 0"),
        (["play", "--task", "99"], "unknown arena task '99'"),
        (["play", "--task", "4", "--agent", "clever"], "unknown agent 'clever'; there are: predimem, no-head"),
        (["play", "--task", "4", "--agent", "predimem", "--weights", "nowhere"], "no weights for 'arena-planner' in"),
        (["play", "--task", "4", "--seed", "-3"], "expected a seed in [0, 2**32), got -3"),
        (["eval", "--tasks", "x", "--time", "dream"], "expected one of 'simulated', 'real', got 'dream'"),
        (["eval", "--tasks", "x", "--s2-latency", "-1"], "latencies are control steps >= 0"),
        (["datagen", "--config", "nowhere.yaml"], "config file not found: nowhere.yaml"),
        (["train", "actor", "--config", "nowhere.yaml"], "config file not found: nowhere.yaml"),
        (["verify", "actor", "--golden", "nowhere"], "nowhere is no folder of golden tensors"),
    ],
)
def test_bad_input_is_one_clear_line(arguments, message, monkeypatch, capsys):
    """In this process: one for each takes long. A SystemExit with words puts them on stderr, and returns 1."""
    monkeypatch.setattr(sys, "argv", ["predimem", *arguments])
    monkeypatch.chdir(ROOT)
    with pytest.raises(SystemExit) as ended:
        main()
    assert str(ended.value.code).startswith("predimem: ")
    assert message in capsys.readouterr().err + str(ended.value.code)


@pytest.mark.slow
def test_a_memory_is_checked_with_the_window_of_a_recipe(tmp_path, monkeypatch, capsys):
    """Whose own memory may be named in the short form."""
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text(f"memory: {ROOT / 'examples' / 'every_few_seconds.py'}:EveryFewSeconds\n")
    words = ["verify", "memory", "memory_bank.uniform:UniformFrames", "--config", str(recipe)]
    monkeypatch.setattr(sys, "argv", ["predimem", *words])
    with suppress(SystemExit):
        main()
    assert "A control step with two cameras of 128 px takes" in capsys.readouterr().out


def test_bad_input_in_a_process_of_its_own():
    result = predimem("eval", "--config", "nowhere.yaml")
    assert result.returncode == 1
    assert "config file not found: nowhere.yaml" in result.stderr and "Traceback" not in result.stderr


@pytest.mark.slow
def test_a_planner_is_not_verified_without_episodes_that_are_held_out(tmp_path):
    first, second = tmp_path / "first", tmp_path / "second"
    for seed in range(5):
        folder = first if seed < 2 else second
        save_episode(episode_path(folder, "Squares-v0", seed), make_episode(seed, "red"))
    result = predimem("verify", "planner", "--episodes", str(first), "--episodes", str(second))
    assert result.returncode == 1 and "Traceback" not in result.stderr
    assert f"{first}, {second}: expected" in result.stderr
    assert "hold out 10% of them, at least 6; it has 5 of 1 task: record more" in result.stderr


def test_without_a_vulkan_driver_there_is_no_video():
    environment = os.environ | {"VK_ICD_FILENAMES": "nowhere.json"}
    for arguments in (["play", "--task", "4"], ["eval", "--suite", "arena", "--agent", "oracle", "--videos", "1"]):
        result = predimem(*arguments, env=environment)
        assert result.returncode == 1 and "VK_ICD_FILENAMES names nowhere.json" in result.stderr
        assert "Traceback" not in result.stderr


def test_unknown_config_key(tmp_path):
    config = tmp_path / "actor.yaml"
    config.write_text("learning_speed: 3\n")
    result = predimem("train", "actor", "--config", str(config))
    assert result.returncode == 1 and "unknown key 'learning_speed'" in result.stderr


def test_verify_actor_against_the_golden_tensors():
    result = predimem("verify", "actor", "--golden", "tests/golden/pi05_a")
    assert result.returncode == 0, result.stderr
    assert result.stdout.count("max abs error") == 3


@pytest.mark.slow
@pytest.mark.needs("suite", "vulkan")
def test_the_shipped_system_plays_asynchronously(tmp_path):
    """One episode of the default weights in SAPIEN, through to results, report and video."""
    arguments = ["--tasks", "RememberColor3-VLA-v0", "--episodes", "1", "--rendering", "fast"]
    result = predimem("eval", *arguments, "--agent", "predimem,random", "--out", str(tmp_path))
    assert result.returncode == 0, result.stderr
    results = json.loads((tmp_path / "results.json").read_text())
    cell = results["results"]["RememberColor3-VLA-v0"]["predimem"]
    assert cell["n"] == 1 and cell["errors"] == 0 and cell["keyframes_mean"] >= 1
    assert set(results["provenance"]["agent_configs"]["predimem"]["weights"]) == {"planner", "actor"}
    assert "<html" in (tmp_path / "report.html").read_text()
    assert len(list(tmp_path.rglob("*.mp4"))) == 2


@pytest.mark.parametrize(
    "command",
    [
        ["eval", "--tasks", "RememberColor3-VLA-v0", "--out", "notes/run"],
        ["eval", "--config", "recipe.yaml"],
        ["harness", "--tasks", "RememberColor3-VLA-v0", "--out", "notes"],
        ["play", "--task", "4", "--out", "notes/run"],
        ["play", "--task", "4", "--out", "notes/run/film.mp4"],
        ["datagen", "--config", "recipe.yaml"],
        ["train", "planner", "--config", "recipe.yaml"],
        ["train", "actor", "--config", "recipe.yaml"],
        ["train", "arena", "--config", "recipe.yaml", "--out", "notes"],
        ["export", "sft", "--episodes", "nowhere", "--out", "notes"],
        ["export", "rerun", "nowhere.h5", "--out", "notes/episode.rrd"],
        ["import", "robomemarena", "--data", "nowhere", "--out", "notes"],
        ["data", "plot", "nowhere.h5", "--out", "notes/plot.png"],
        ["decompose", "--task", "4", "--out", "notes/steps.json"],
        ["skills", "--out", "notes/skills.jsonl"],
        ["serve", "--state-dir", "notes"],
        ["memory", "export", "--store", "nowhere", "--robot", "r", "--session", "s", "--out", "notes/s.session"],
    ],
)
def test_where_a_command_cannot_write_is_told_first_in_one_line(command, tmp_path, monkeypatch):
    (tmp_path / "notes").write_text("mine")
    (tmp_path / "recipe.yaml").write_text("out: notes/run\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["predimem", *command])
    before = set(sys.modules)
    with pytest.raises(SystemExit) as error:
        main()
    assert str(error.value).startswith("predimem: notes: not a directory; a folder is expected there: move the file")
    assert "\n" not in str(error.value)
    assert not {"torch", "sapien", "mani_skill", "transformers"} & (set(sys.modules) - before)
    assert (tmp_path / "notes").read_text() == "mine" and len(list(tmp_path.iterdir())) == 2


def test_an_unknown_key_of_a_later_stage_is_told_before_the_first_one(tmp_path, monkeypatch):
    recipe = yaml.safe_load((ROOT / "configs/train_arena.yaml").read_text())
    recipe["actor"]["recipe_changes"] = {"stepz": 3}
    recipe["out"] = str(tmp_path / "out")
    (tmp_path / "recipe.yaml").write_text(yaml.safe_dump(recipe))
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(sys, "argv", ["predimem", "train", "arena", "--config", str(tmp_path / "recipe.yaml")])
    with pytest.raises(SystemExit, match="predimem: the stage arena-actor: unknown key 'stepz'"):
        main()
    assert not (tmp_path / "out").exists()

"""`predimem tasks`, `--version`, names that were mistyped, and tasks as numbers."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from datagen.demos.config import GenerationConfig
from predimem.cli.app import app
from predimem.core.config import from_dict
from predimem.envs.arena.tasks import TASKS, task_of
from predimem.envs.benchmark import load_benchmark
from predimem.evaluation.run.config import EvaluationFile
from predimem.evaluation.run.machine import revision
from predimem.evaluation.run.names import check_agents
from predimem.pipelines.retrain import RetrainConfig

ROOT = Path(__file__).parents[2]


def shown(*arguments: str) -> str:
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_every_task_of_the_arena_has_its_line():
    lines = shown("tasks", "--benchmark", "arena").splitlines()
    assert [line.split()[:2] for line in lines] == [[task.name, str(task.task_id)] for task in TASKS]
    assert "occlusion     9 stages  Open and close the top, the middle" in lines[3]


def test_a_task_of_ones_own_and_a_benchmark_of_ones_own():
    mine = ROOT / "examples" / "tidy_the_table.py"
    lines = shown("tasks", "--tasks", f"{mine},4").splitlines()
    assert lines[0].split()[0] == task_of(mine).name and lines[1].startswith("ButterInOccupiedDrawer ")
    assert "RememberTheLight" in shown("tasks", "--benchmark", str(ROOT / "examples" / "remember_the_light.py"))


@pytest.mark.needs("suite")
def test_both_benchmarks_are_listed():
    text = shown("tasks")
    assert "arena: 26 tasks (--benchmark arena)" in text and re.search(r"^mikasa: \d+ tasks", text, re.MULTILINE)
    assert re.search(r"^RememberColor9-VLA-v0 +25 steps  \w+", text, re.MULTILINE)


def test_the_version():
    commit, _ = revision()
    text = shown("--version")
    assert re.match(r"predimem \d+\.\d+", text) and (commit is None or commit[:7] in text)


@pytest.mark.parametrize(
    ("mistake", "meant"),
    [
        (lambda: task_of("ButterInOcupiedDrawer"), "did you mean ButterInOccupiedDrawer"),
        (lambda: load_benchmark("areno"), "did you mean arena?"),
        (lambda: check_agents(["oracel"], "arena", {}), "did you mean oracle?"),
        (lambda: from_dict(EvaluationFile, {"episods": 3}), "did you mean episodes?"),
    ],
)
def test_mistyped_names(mistake, meant):
    with pytest.raises(ValueError, match=re.escape(meant)):
        mistake()


@pytest.mark.needs("suite")
def test_a_mistyped_task_of_mikasa():
    with pytest.raises(ValueError, match="did you mean RememberColor9-VLA-v0"):
        load_benchmark("mikasa").task_name("RememberColor9-VLA")


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [(["evl"], "Did you mean 'eval'?"), (["eval", "--episods", "3"], "--episodes"), (["train", "actr"], "'actor'")],
)
def test_mistyped_commands_and_flags(arguments, meant):
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 2 and meant in result.output


def test_tasks_may_be_numbers_in_yaml():
    assert from_dict(EvaluationFile, {"benchmark": "arena", "tasks": [4, "ButterInEmptyDrawer"]}).tasks[0] == "4"
    config = from_dict(GenerationConfig, {"out": "x", "tasks": [4]})
    assert config.jobs()[0].task == "ButterInOccupiedDrawer"
    assert "tasks" in RetrainConfig.complete_data({"tasks": [4]})

"""`--difficulty`: which tasks it chooses, and what it refuses."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from predimem.cli.app import app
from predimem.core.config import read_yaml
from predimem.envs.arena.benchmark import ARENA
from predimem.envs.arena.long.templates import TEMPLATES
from predimem.envs.arena.tasks import TASKS
from predimem.envs.benchmark import load_benchmark
from predimem.evaluation.run.config import evaluation_settings

ROOT = Path(__file__).parents[4]


def test_a_difficulty_chooses_tasks() -> None:
    names = tuple(template.name for template in TEMPLATES)
    assert ARENA.at_difficulty((), "long") == names
    assert ARENA.at_difficulty(("1", "long-03", "predimem/Arena-long-04-v0"), "long") == (names[0], *names[2:4])
    assert ARENA.at_difficulty((), "standard") == tuple(task.name for task in TASKS)
    assert ARENA.at_difficulty(("4",), "standard") == ("4",)
    assert ARENA.all_tasks() == tuple(task.name for task in TASKS)
    found = ARENA.categories(["long-01", "4"])
    assert found["long"] == ["long-01"] and sum(map(len, found.values())) == len(TASKS) + 1
    assert "long" not in ARENA.categories(["4"])


@pytest.mark.parametrize(
    ("tasks", "difficulty", "said"),
    [
        ((), "lng", "unknown difficulty 'lng'; did you mean long.; the arena has: standard, long"),
        (("ButterInOccupiedDrawer",), "long", "unknown long task 'ButterInOccupiedDrawer'"),
        (("long-01",), "standard", "long-01 is a long task: play it with --difficulty long"),
    ],
)
def test_what_it_refuses(tasks: tuple[str, ...], difficulty: str, said: str) -> None:
    with pytest.raises(ValueError, match=said) as error:
        ARENA.at_difficulty(tasks, difficulty)
    assert "\n" not in str(error.value)


def test_conditions_are_for_the_26() -> None:
    with pytest.raises(ValueError, match="conditions are for the 26 tasks of the arena: leave -camera out"):
        ARENA.task_name("long-01-camera")
    with pytest.raises(ValueError, match="conditions and difficulty do not go together"):
        evaluation_settings(None, {"benchmark": "arena", "conditions": ["camera"], "difficulty": "long"})
    with pytest.raises(ValueError, match="leave --difficulty out, got 'long'"):
        load_benchmark("base").at_difficulty((), "long")


def test_the_file_has_the_rows_and_an_option_chooses() -> None:
    settings = evaluation_settings(ROOT / "configs/eval/arena_long.yaml", {})
    assert settings.difficulty == "long" and settings.tasks == ()
    planners = {agent.planner for agent in settings.agent_configs.values()}
    names = (path.stem.replace("_", "-") for path in (ROOT / "configs/planner").glob("arena_long*.yaml"))
    trained = {name.replace("arena", "arena-planner") for name in names if name != "arena-long-sentences"}
    assert len(trained) == 4
    assert planners == trained | {f"{name}-driven" for name in trained} | {"oracle"}
    assert set(read_yaml(ROOT / "configs/train_long_rounds.yaml")["planners"]) == trained
    assert {agent.actor for agent in settings.agent_configs.values()} == {"skills"}
    assert evaluation_settings(None, {"benchmark": "arena"}).difficulty is None


def test_the_commands_know_it() -> None:
    listed = CliRunner().invoke(app, ["tasks", "--benchmark", "arena", "--difficulty", "long"])
    assert [line.split()[0] for line in listed.stdout.splitlines()] == [template.name for template in TEMPLATES]
    assert "--difficulty" in CliRunner().invoke(app, ["eval", "--help"], env={"COLUMNS": "200"}).stdout
    refused = CliRunner().invoke(app, ["tasks", "--difficulty", "long"])
    assert refused.exit_code != 0 and "--difficulty needs --benchmark" in str(refused.exception)

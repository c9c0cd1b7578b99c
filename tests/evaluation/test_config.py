"""What an evaluation's file and the options beside it come to."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from predimem.agent.config import AgentConfig
from predimem.core.config import ConfigError, load_config
from predimem.evaluation.run.config import EvaluationFile, PlayConfig, evaluation_settings, played_with
from predimem.evaluation.run.names import missing_weights

ROOT = Path(__file__).parents[2]
FILE = """
suite: arena
episodes: 20
play:
  time: {s2_latency_steps: 4}
rows:
  ours: {planner: arena-planner, actor: skills}
"""


def test_options_override_the_file_and_leave_the_rest(tmp_path: Path) -> None:
    path = tmp_path / "eval.yaml"
    path.write_text(FILE)
    settings = evaluation_settings(path, {"episodes": 3, "tasks": ["4"], "play.time.s1_latency_steps": 2, "out": None})
    assert (settings.episodes, settings.tasks, settings.out) == (3, ("4",), "runs/eval")
    assert (settings.play.time.s1_latency_steps, settings.play.time.s2_latency_steps) == (2, 4)
    assert settings.rows == {"ours": AgentConfig("arena-planner", "skills")}
    assert evaluation_settings(None, {}) == EvaluationFile()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("rows: {a: {planner: x, actor: y}}", "rows are systems that play the arena, not mikasa"),
        ("suite: arena\nrows: {a: {planner: x}}", "actor"),
        ("suite: arena\nrows: {a: {planner: instruction, actor: skills}}", "the planner `instruction` names none"),
        ("suite: arena\nrows: {a: {planner: instruction, actor: expert}}", "expert carries out subtasks"),
        ("suite: arena\nrows: {a: {planner: truth, actor: x, memory: {keyframes: false}}}", "'truth' has none"),
        ("suite: arena\nrows: {a: {planner: x, actor: skills, camera_every: 0}}", "at least 1, got 0"),
        ("suite: arena\nplay: {rows: {a: {planner: truth, actor: skills}}}", "rows belong on the top level"),
        ("episode: 3", "unknown key 'episode'"),
    ],
)
def test_a_faulty_file_says_what_is_wrong(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "eval.yaml"
    path.write_text(text)
    with pytest.raises(ValueError, match=message):
        evaluation_settings(path, {})


def test_pictures_are_taken_as_often_as_somebody_looks() -> None:
    play = evaluation_settings(ROOT / "configs/eval/arena.yaml", {}).play
    assert play.agent.plan_every_steps == 10
    assert play.camera_every(AgentConfig("arena-planner", "skills")) == 10
    assert play.camera_every(AgentConfig("truth", "arena-actor")) == 2
    assert play.camera_every(AgentConfig("truth", "skills")) is None
    assert play.camera_every(AgentConfig("truth", "expert")) is None
    assert play.camera_every(AgentConfig("truth", "skills", camera_every=5)) == 5


def test_the_rows_of_the_shipped_file() -> None:
    settings = load_config(EvaluationFile, ROOT / "configs/eval/arena.yaml")
    assert next(iter(settings.rows)) == "predimem" and settings.episodes == 20 and not settings.tasks
    for name, row in settings.rows.items():
        assert (row.actor == "skills") == ("-skills" in name)
        assert row.against is None or row.against in settings.rows
    assert set(missing_weights(settings.rows, None)) == {"reactive"}  # for its 4 MB
    assert settings.rows["oracle-memory"].weights == ("arena-actor",)
    assert settings.rows["oracle-memory-skills"].weights == ()


def test_results_say_how_they_were_played(tmp_path: Path) -> None:
    rows = {"ours": {"planner": "arena-planner", "actor": "skills", "memory": {}, "weights": {"arena-planner": "ab"}}}
    path = tmp_path / "results.json"
    path.write_text(json.dumps({"provenance": {"play": {"suite": "arena", "weights": "there"}, "rows": rows}}))
    assert played_with(path) == PlayConfig(
        suite="arena", weights="there", rows={"ours": AgentConfig("arena-planner", "skills")}
    )
    assert played_with(path, "here").weights == "here"
    path.write_text("[]")
    with pytest.raises(ConfigError, match=r"no results\.json of `predimem eval`"):
        played_with(path)

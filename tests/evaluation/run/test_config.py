"""What an evaluation's file and the options beside it come to."""

from __future__ import annotations

import json
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

from planner.caches import CacheConfig
from planner.endpoint import EndpointConfig
from predimem.agent.config import AgentConfig
from predimem.agent.dual_system import DualSystemConfig
from predimem.core.config import ConfigError, from_dict, load_config, to_dict
from predimem.core.placement import Placement
from predimem.evaluation.analysis.compact import episodes_of
from predimem.evaluation.run.benchmark_player import BenchmarkPlayer
from predimem.evaluation.run.config import EvaluationFile, PlayConfig, evaluation_settings, played_with, read_results
from predimem.evaluation.run.migrations import AGENT_DEFAULTS, SCHEMA, modern_provenance, modern_results
from predimem.evaluation.run.names import missing_weights

ROOT = Path(__file__).parents[3]
FILE = """
benchmark: arena
episodes: 20
play:
  time: {s2_latency_steps: 4}
agent_configs:
  ours: {planner: arena-planner, actor: skills}
"""


def test_options_override_the_file_and_leave_the_rest(tmp_path: Path) -> None:
    path = tmp_path / "eval.yaml"
    path.write_text(FILE)
    settings = evaluation_settings(path, {"episodes": 3, "tasks": ["4"], "play.time.s1_latency_steps": 2, "out": None})
    assert (settings.episodes, settings.tasks, settings.out) == (3, ("4",), "runs/eval")
    assert (settings.play.time.s1_latency_steps, settings.play.time.s2_latency_steps) == (2, 4)
    assert settings.agent_configs == {"ours": AgentConfig("arena-planner", "skills")}
    own = evaluation_settings(None, {})
    assert (
        own.play == PlayConfig(actor_camera_every=1) and next(iter(own.agent_configs)) == "predimem" and own.tasks == ()
    )


def test_without_a_file_each_benchmark_has_a_folder_of_its_own() -> None:
    light = str(ROOT / "examples/remember_the_light.py")
    for benchmark, folder in ((None, "mikasa"), ("base", "base"), (light, "remember_the_light")):
        assert evaluation_settings(None, {"benchmark": benchmark}).out == f"runs/eval/{folder}"
    assert evaluation_settings(None, {"benchmark": "base", "out": "here"}).out == "here"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("- benchmark: arena", "expected a mapping, got a list"),
        ("rows: {a: {planner: x, actor: y}}\nagent_configs: {}", "'rows' is the former name of 'agent_configs'"),
        ("benchmark: arena\nagent_configs: {a: {planner: x}}", "actor"),
        ("benchmark: arena\nagent_configs: {a: {planner: instruction, actor: skills}}", "`instruction` names none"),
        ("benchmark: arena\nagent_configs: {a: {planner: instruction, actor: expert}}", "expert carries out subtasks"),
        ("agent_configs: {a: {planner: oracle, actor: x, memory: {keyframes: false}}}", "has none"),
        ("benchmark: arena\nagent_configs: {a: {planner: x, actor: skills, camera_every: 0}}", "at least 1, got 0"),
        ("benchmark: arena\nagent_configs: {a: {planner: x, actor: y, confirm_plans: 0}}", "confirm_plans: .* got 0"),
        ("benchmark: arena\nagent_configs: {a: {planner: x, actor: y, execute_steps: 0}}", "execute_steps: .* got 0"),
        ("play: {agent_configs: {a: {planner: oracle, actor: skills}}}", "on the top level"),
        ("episode: 3", "unknown key 'episode'"),
    ],
)
def test_a_faulty_file_says_what_is_wrong(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "eval.yaml"
    path.write_text(text)
    with pytest.raises(ValueError, match=message):
        evaluation_settings(path, {})


def test_images_are_taken_as_often_as_somebody_looks() -> None:
    play = evaluation_settings(ROOT / "configs/eval/arena.yaml", {}).play
    assert play.agent.plan_every_steps == 10

    def every(planner: str, actor: str, camera_every: int | None = None) -> int | None:
        agents = {"a": AgentConfig(planner, actor, camera_every=camera_every)}
        return replace(play, agent_configs=agents).images_every("a")

    assert every("arena-planner", "skills") == 10
    assert every("oracle", "arena-actor") == 2
    assert every("oracle", "skills") is None
    assert every("oracle", "expert") is None
    assert every("oracle", "skills", 5) == 5
    assert play.images_every("random") is None


def test_the_agent_configs_of_the_shipped_file() -> None:
    settings = load_config(EvaluationFile, ROOT / "configs/eval/arena.yaml")
    assert next(iter(settings.agent_configs)) == "predimem" and settings.episodes == 20 and not settings.tasks
    for name, config in settings.agent_configs.items():
        assert (config.actor == "skills") == ("-skills" in name)
        assert config.against is None or config.against in settings.agent_configs
    assert set(missing_weights(settings.agent_configs, None)) == {"reactive"}  # for its 4 MB
    assert settings.agent_configs["oracle-memory"].weights == ("arena-actor",)
    assert settings.agent_configs["oracle-memory-skills"].weights == ()


def test_results_of_earlier_versions_say_how_they_were_played(tmp_path: Path) -> None:
    agents = {"ours": {"planner": "truth", "actor": "skills", "memory": {}, "weights": {"arena-planner": "ab"}}}
    play = {"suite": "arena", "weights": "there", "rendering": "stock", "image_px": 64, "actor_camera_every": 3}
    path = tmp_path / "results.json"
    old = {"schema": 1, "suite": "arena", "suite_version": "arena 1", "provenance": {"play": play, "rows": agents}}
    path.write_text(json.dumps(old))
    results = read_results(path)
    assert (results["benchmark"], results["benchmark_version"]) == ("arena", "arena 1")
    assert played_with(results, str(path)) == PlayConfig(
        benchmark="arena",
        environment={"image_px": 64},
        actor_camera_every=3,
        weights="there",
        agent_configs={"ours": AgentConfig("oracle", "skills")},
    )
    assert played_with(results, str(path), "here").weights == "here"
    path.write_text("[]")
    with pytest.raises(ConfigError, match=r"no results\.json of `predimem eval`"):
        read_results(path)


def test_the_built_in_agents_of_earlier_results_have_their_weights() -> None:
    old = {
        "schema": 1,
        "suite": "mikasa",
        "config": {"suite": "mikasa", "agents": ["reactive", "random"]},
        "provenance": {
            "play": {"suite": "mikasa", "rendering": "fast", "image_px": 128},
            "suite_version": "mikasa 1",
            "weights": {"planner": "ab", "actor": "cd"},
        },
    }
    results = modern_results(old)
    assert results["provenance"] == {
        "play": {"benchmark": "mikasa", "environment": {"rendering": "fast"}},
        "benchmark_version": "mikasa 1",
        "agent_configs": {
            "reactive": {
                "planner": "instruction", "actor": "actor", "weights": {"actor": "cd"}, "memory": {}, "prompt": {},
                "actor_options": {}, "planner_options": {}, "s2_latency_steps": None, "confirm_plans": None,
                "execute_steps": None, "camera_every": None, "slip_probability": 0.0,
            }
        },
    }  # fmt: skip
    assert modern_results(results) == results


def test_records_from_before_refusals_have_none() -> None:
    episodes = [{"task": "1", "status": "success"}, {"task": "2", "status": "failure", "refusals": 7}]
    results = modern_results({"schema": 2, "provenance": {}, "episodes": episodes})
    assert [record["refusals"] for record in results["episodes"]] == [0, 7]
    shipped = episodes_of(read_results(ROOT / "results" / "arena_planners.json"))
    assert all("refusals" not in record for record in shipped), "so `--verify` does not compare what was not counted"


def test_shipped_results_can_be_verified_with_todays_settings() -> None:
    """What `predimem eval --verify` compares, without an episode: a new setting needs a default for older results."""
    results = read_results(ROOT / "results" / "arena_planners.json")
    before = results["provenance"]
    play = from_dict(PlayConfig, before["play"] | {"agent_configs": {}})
    now = BenchmarkPlayer(play).provenance()["play"]
    assert {**before["play"], "weights": None} == {**now, "weights": None}
    agent = AGENT_DEFAULTS | before["agent_configs"]["predimem-skills"]
    assert set(agent) - {"weights"} == {field.name for field in fields(AgentConfig)} - {"note", "against"}


def test_only_what_changes_an_answer_is_part_of_the_provenance() -> None:
    def provenance(**caches: Any) -> dict[str, Any]:
        return BenchmarkPlayer(PlayConfig("arena", planner_caches=CacheConfig(**caches))).provenance()["play"]

    assert provenance(prefix_mb=0, episodes=1) == provenance() != provenance(half_features=True)


def test_where_models_ran_is_part_of_the_provenance_and_can_be_played_again() -> None:
    """A CPU in float32 is not worth a word, and neither is a planner that workers shared."""
    endpoint = EndpointConfig("http://gpu:8000/v1", timeout_s=3)
    play = PlayConfig(
        "arena",
        planner_on=Placement("cuda:1", "bfloat16"),
        planner_endpoints={"arena-planner": endpoint},
        planner_caches=CacheConfig(half_features=True),
    )
    noted = BenchmarkPlayer(play).provenance()["play"]
    again = from_dict(PlayConfig, noted)
    assert again.planner_on == play.planner_on and again.actor_on == Placement()
    assert again.planner_endpoints == {"arena-planner": EndpointConfig("http://gpu:8000/v1")}
    assert again.planner_caches.half_features
    assert PlayConfig(shared_planner=True, planner_endpoints={"a": endpoint}).compute == {}
    with pytest.raises(ValueError, match="planner_endpoints: a: constrained answers are for serving"):
        PlayConfig(planner_endpoints={"a": replace(endpoint, constrained=True)})
    with pytest.raises(ValueError, match="dtype: expected one of float32"):
        from_dict(PlayConfig, {"planner_on": {"dtype": "int8"}})


def test_shipped_episode_records_have_their_trajectory_fingerprints() -> None:
    for path in sorted((ROOT / "results").glob("*.json")):
        records = episodes_of(read_results(path))
        assert records and all(len(r["trajectory"]) == 16 for r in records if r["status"] != "error"), path


def test_settings_of_earlier_versions_are_read(tmp_path: Path) -> None:
    path = tmp_path / "eval.yaml"
    path.write_text("suite: arena\nrows: {a: {planner: truth, actor: skills}}\nplay: {image_px: 64}")
    settings = evaluation_settings(path, {})
    assert settings.benchmark == "arena" and settings.agent_configs == {"a": AgentConfig("oracle", "skills")}
    assert settings.play.environment == {"image_px": 64}


def test_results_of_todays_schema_get_the_options_that_came_later() -> None:
    path = Path("results/mikasa_touch_no_keyframes.json")
    results = json.loads(path.read_text())
    assert results["schema"] == SCHEMA and "keep_plan" not in results["provenance"]["play"]["agent"]
    assert modern_results(results)["provenance"]["play"]["agent"]["keep_plan"] is False


def test_results_from_before_chunks_could_continue_are_of_agents_whose_chunks_do_not() -> None:
    """Or else results of today could not be compared with those that are kept."""
    before = {"execute_steps": 4, "plan_every_steps": 10, "confirm_plans": 1, "min_confidence": 0.0}
    modern = modern_provenance({"play": {"benchmark": "arena", "agent": before}})
    assert modern["play"]["agent"] == to_dict(DualSystemConfig(4, 10))

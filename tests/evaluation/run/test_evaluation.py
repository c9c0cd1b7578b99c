"""Whole evaluations in real worker processes: deaths, errors, interruption, resumption."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from predimem.evaluation.run.evaluation import EvaluationConfig, EvaluationError, format_table, run_evaluation
from tests.evaluation.fake_player import FakePlayer, broken_player, suicidal_player

ROOT = Path(__file__).parents[3]
TASKS = ("RememberColor3-VLA-v0", "RememberColor9-VLA-v0")


def config(out: Path, **changes: Any) -> EvaluationConfig:
    defaults: dict[str, Any] = {"benchmark": "mikasa", "tasks": TASKS, "agents": ("predimem", "reactive")}
    return EvaluationConfig(**(defaults | {"episodes": 5, "videos_per_task": 0, "out": str(out)} | changes))


def outcomes(results: dict[str, Any]) -> list[tuple[Any, ...]]:
    return [(e["task"], e["agent"], e["seed"], e["status"], e["steps"]) for e in results["episodes"]]


def test_deaths_and_errors_are_no_failures_and_workers_change_nothing(tmp_path: Path) -> None:
    player = partial(FakePlayer, kill_seed=900_001, raise_seed=900_002, error_seed=900_003)
    results = run_evaluation(config(tmp_path / "two", workers=2, videos_per_task=1), player)
    one = run_evaluation(config(tmp_path / "one", workers=1, tasks=TASKS[:1]), player)
    assert outcomes(results)[:10] == outcomes(one)
    assert [e["seed"] for e in results["episodes"]] == [900_000 + i for i in range(5)] * 4

    cell = results["results"]["RememberColor3-VLA-v0"]["predimem"]
    assert (cell["n"], cell["successes"], cell["errors"], cell["success"]) == (2, 1, 3, 0.5)
    messages = " | ".join(cell["error_messages"])
    for part in ("SIGKILL", "the simulator is on fire", "no such cube"):
        assert part in messages
    assert (cell["csr"], cell["wrong_first_touch"], cell["keyframes_mean"]) == (0.75, 0.5, 2)
    assert (cell["s1_ms_median"], cell["s2_ms_median"], cell["steps_mean"]) == (20, 100, 12)
    assert (cell["stale_action_ratio"], cell["held_action_ratio"]) == pytest.approx((1 / 12, 3 / 12))
    assert results["results"]["RememberColor9-VLA-v0"]["reactive"]["plan_age_mean"] is None

    written = json.loads((tmp_path / "two" / "results.json").read_text())
    assert written == json.loads(json.dumps(results))
    assert written["schema"] == 2 and written["benchmark_version"] == "fake 1.0"
    assert written["provenance"]["weights"]["planner"] == "abc"
    filmed = [e for e in results["episodes"] if e["video"]]
    assert [e["seed"] for e in filmed] == [900_000] * 4
    assert all((tmp_path / "two" / e["video"]).stat().st_size > 1000 for e in filmed)
    assert (tmp_path / "two" / "report.html").is_file()
    trace = json.loads((tmp_path / "two" / filmed[0]["trace"]).read_text())
    assert len(trace["ticks"]) == 12 and sorted(trace["thumbnails"]) == ["0", "5"]

    table = format_table(results)
    assert "0.50 [0.09, 0.91] n=2 +3 errors" in table and "0.65  RATE" in table


@pytest.mark.slow
def test_a_worker_that_hangs_is_replaced(tmp_path: Path) -> None:
    hang = partial(FakePlayer, hang_seed=900_001)
    settings = config(tmp_path, tasks=TASKS[:1], agents=("predimem",), episodes=3, episode_timeout_s=5.0)
    results = run_evaluation(settings, hang)
    assert [e["status"] for e in results["episodes"]] == ["success", "error", "success"]
    assert "5 s" in results["episodes"][1]["message"]


def test_finished_episodes_are_not_played_again_and_more_can_be_added(tmp_path: Path) -> None:
    small = config(tmp_path, tasks=TASKS[:1], agents=("predimem",), episodes=3)
    run_evaluation(small, partial(FakePlayer, error_seed=900_001))
    # Now every one of these seeds would kill its worker: only new ones may be played.
    larger = config(tmp_path, tasks=TASKS[:1], agents=("predimem",), episodes=4)
    results = run_evaluation(larger, partial(FakePlayer, kill_seed=900_000))
    assert [e["status"] for e in results["episodes"]] == ["success", "error", "success", "success"]
    retried = run_evaluation(config(**vars_of(larger, retry_errors=True)), FakePlayer)
    assert [e["status"] for e in retried["episodes"]] == ["success"] * 4
    assert retried["episodes"][0] == results["episodes"][0]
    assert results["wall_s"] <= retried["wall_s"]  # of all runs together
    assert run_evaluation(larger, FakePlayer)["wall_s"] == retried["wall_s"]


def vars_of(settings: EvaluationConfig, **changes: Any) -> dict[str, Any]:
    return vars(settings) | {"out": Path(settings.out)} | changes


def test_other_weights_need_another_folder(tmp_path: Path) -> None:
    settings = config(tmp_path, tasks=TASKS[:1], agents=("predimem",), episodes=1)
    run_evaluation(settings, FakePlayer)
    with pytest.raises(EvaluationError, match=r'weights.planner \(was "abc", is "xyz"\).*--out.*--overwrite'):
        run_evaluation(settings, partial(FakePlayer, weights="xyz"))
    results = run_evaluation(config(**vars_of(settings, overwrite=True)), partial(FakePlayer, weights="xyz"))
    assert results["provenance"]["weights"]["planner"] == "xyz"
    assert len((tmp_path / "episodes.jsonl").read_text().splitlines()) == 4  # what, when, one episode, how long


def test_agent_configs_come_and_go_but_do_not_change(tmp_path: Path) -> None:
    small = config(tmp_path, tasks=TASKS[:1], agents=("predimem",), episodes=1)
    run_evaluation(small, partial(FakePlayer, agent_configs={"predimem": {"actor": "skills"}}))
    both = config(**vars_of(small, agents=("predimem", "reactive")))
    agents = {"predimem": {"actor": "skills"}, "reactive": {"actor": "learned"}}
    kills = partial(FakePlayer, kill_seed=900_000, agent_configs=agents)  # unless reactive
    results = run_evaluation(both, kills)
    assert [e["status"] for e in results["episodes"]] == ["success", "success"]
    assert results["comparisons"]["results"]["all tasks"]["reactive"]["n"] == 1
    run_evaluation(small, partial(FakePlayer, agent_configs={"predimem": {"actor": "skills"}}))
    with pytest.raises(EvaluationError, match=r'reactive\.actor \(was "learned", is "other"\)'):
        run_evaluation(both, partial(FakePlayer, agent_configs=agents | {"reactive": {"actor": "other"}}))


def test_a_line_cut_short_is_played_again_and_damage_is_reported(tmp_path: Path) -> None:
    settings = config(tmp_path, tasks=TASKS[:1], agents=("predimem",), episodes=2)
    run_evaluation(settings, FakePlayer)
    journal = tmp_path / "episodes.jsonl"
    journal.write_text(journal.read_text()[:-40])
    assert outcomes(run_evaluation(settings, FakePlayer))[1][3] == "success"
    lines = journal.read_text().splitlines()
    journal.write_text("\n".join([lines[0], "{broken", *lines[1:]]) + "\n")
    with pytest.raises(EvaluationError, match="damaged"):
        run_evaluation(settings, FakePlayer)


def test_a_player_that_cannot_be_built_ends_the_run(tmp_path: Path) -> None:
    with pytest.raises(EvaluationError, match=r"weights not found: planner\.safetensors"):
        run_evaluation(config(tmp_path), broken_player)
    with pytest.raises(EvaluationError, match=r"exit code 7.*while it was built"):
        run_evaluation(config(tmp_path), suicidal_player)


@pytest.mark.parametrize(
    "changes,message",
    [
        ({"tasks": ()}, "tasks: expected one or more"),
        ({"agents": ("random", "random")}, "agents: expected one or more different"),
        ({"episodes": 0}, "episodes: expected at least 1, got 0"),
        ({"workers": 0}, "workers"),
    ],
)
def test_config_says_what_is_wrong(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        config(tmp_path, **changes)


SCRIPT = """
import sys
from functools import partial
from pathlib import Path
from predimem.evaluation.run.evaluation import run_evaluation
from tests.evaluation.fake_player import FakePlayer
from tests.evaluation.run.test_evaluation import config
run_evaluation(config(Path(sys.argv[1]), workers=2), partial(FakePlayer, delay_s=0.3))
"""


def test_ctrl_c_then_the_same_command_goes_on(tmp_path: Path) -> None:
    command = [sys.executable, "-c", SCRIPT, str(tmp_path)]
    first = subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    journal, deadline = tmp_path / "episodes.jsonl", time.monotonic() + 60
    while time.monotonic() < deadline and not (journal.exists() and '"episode"' in journal.read_text()):
        time.sleep(0.05)
    os.killpg(first.pid, signal.SIGINT)  # as a terminal does: to the parent and to its workers
    stdout, stderr = first.communicate(timeout=30)
    assert first.returncode != 0 and "the same command goes on" in stdout
    assert stderr.count("KeyboardInterrupt") == 1, stderr
    assert (tmp_path / "workers.log").read_text() == ""  # the workers leave quietly
    lines = [json.loads(line) for line in journal.read_text().splitlines()[2:]]
    before = [line["episode"] for line in lines if "episode" in line]
    assert lines[-1]["seconds"] > 0  # how long the interrupted run took
    assert 1 <= len(before) < 20
    assert not (tmp_path / "results.json").exists()

    results = run_evaluation(config(tmp_path, workers=2), FakePlayer)
    played = {(e["task"], e["agent"], e["seed"]): e["wall_s"] for e in results["episodes"]}
    assert len(played) == 20
    assert all(played[e["task"], e["agent"], e["seed"]] == e["wall_s"] for e in before)
    assert len(journal.read_text().splitlines()) == 1 + 2 * 2 + 20  # its head, beginning and end of two runs, episodes

"""Faults of the set-up: they stop an evaluation, cost no seed, and the same call goes on when they are mended."""

from __future__ import annotations

import errno
import json
import resource
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from predimem.agent.baselines import RandomAgent
from predimem.agent.runtime import run_episode
from predimem.core.faults import SetupError
from predimem.core.types import EpisodeResult
from predimem.evaluation.report.video import Film, VideoRecorder
from predimem.evaluation.run.benchmark_player import BenchmarkPlayer
from predimem.evaluation.run.config import PlayConfig, evaluation_settings
from predimem.evaluation.run.evaluation import errors_alone, run_evaluation
from tests.evaluation.fake_player import FakePlayer, play_frames
from tests.evaluation.run.test_evaluation import config, outcomes

ONE: dict[str, Any] = {"tasks": ("RememberColor3-VLA-v0",), "agents": ("predimem",), "episodes": 3}


def lines(out: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (out / "episodes.jsonl").read_text().splitlines()]


def test_models_that_cannot_be_loaded_stop_the_run_before_anything_is_noted(tmp_path: Path, capsys) -> None:
    broken = partial(FakePlayer, weights="truncated", unfit=ValueError("no weights in model.safetensors; export again"))
    with pytest.raises(SetupError, match="no weights in model"):
        run_evaluation(config(tmp_path, **ONE), broken)
    assert "stopped: 0 of 3 episodes played" in capsys.readouterr().out
    assert lines(tmp_path) == [], "other weights may be mended ones"
    assert len(run_evaluation(config(tmp_path, **ONE), FakePlayer)["episodes"]) == 3


def test_with_overwrite_nothing_is_lost_to_models_that_cannot_be_loaded(tmp_path: Path) -> None:
    before = run_evaluation(config(tmp_path, **ONE), FakePlayer)
    with pytest.raises(SetupError):
        run_evaluation(config(tmp_path, **ONE, overwrite=True), partial(FakePlayer, unfit=ValueError("truncated")))
    again = run_evaluation(config(tmp_path, **ONE), FakePlayer)
    assert [e["wall_s"] for e in again["episodes"]] == [e["wall_s"] for e in before["episodes"]]
    anew = run_evaluation(config(tmp_path, **ONE, overwrite=True), FakePlayer)
    assert [e["wall_s"] for e in anew["episodes"]] != [e["wall_s"] for e in before["episodes"]]


def test_a_fault_in_the_middle_of_a_run_costs_no_seed(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="robot:8000 cannot be reached: start it"):
        run_evaluation(config(tmp_path, **ONE), partial(FakePlayer, unreachable_seed=900_001))
    assert [line["episode"]["seed"] for line in lines(tmp_path) if "episode" in line] == [900_000]
    results = run_evaluation(config(tmp_path, **ONE), FakePlayer)
    assert outcomes(results) == outcomes(run_evaluation(config(tmp_path / "whole", **ONE), FakePlayer))


def test_a_full_disk_costs_no_seed(tmp_path: Path) -> None:
    with pytest.raises(OSError) as raised:
        run_evaluation(config(tmp_path, **ONE, traces_per_task=3), partial(FakePlayer, file_bytes=1000))
    assert raised.value.errno == errno.EFBIG and "traces" in raised.value.filename
    assert not [line for line in lines(tmp_path) if "episode" in line]
    assert not any(e["status"] == "error" for e in run_evaluation(config(tmp_path, **ONE), FakePlayer)["episodes"])


def test_a_folder_that_cannot_be_written_to_is_noticed_before_a_worker_is_built(tmp_path: Path) -> None:
    (tmp_path / "notes").write_text("")
    with pytest.raises(NotADirectoryError):
        run_evaluation(config(tmp_path / "notes" / "run", **ONE), FakePlayer)


def test_where_all_episodes_end_in_an_error_the_report_is_written_and_the_cause_is_told(tmp_path: Path) -> None:
    settings = config(tmp_path, **{**ONE, "episodes": 1}, videos_per_task=1)
    results = run_evaluation(settings, partial(FakePlayer, raise_seed=900_000))
    assert (tmp_path / "report.html").is_file()
    told = errors_alone(results)
    assert "every episode of predimem ended in an error, the first one RememberColor3-VLA-v0 seed 900000" in told
    assert "RuntimeError: the simulator is on fire" in told and "--retry-errors" in told

    trace = tmp_path / results["episodes"][0]["trace"]
    trace.write_text(json.dumps({"task": ONE["tasks"][0], "agent": "predimem", "seed": 900_000}))  # as it used to be
    (tmp_path / "report.html").unlink()
    run_evaluation(settings, FakePlayer)
    assert (tmp_path / "report.html").is_file()
    assert not errors_alone(run_evaluation(config(tmp_path, **{**ONE, "episodes": 1}, retry_errors=True), FakePlayer))


class Unrenderable:
    instruction, action_dim, horizon, control_hz = "wait", 7, 3, 20.0

    def reset(self, seed: int) -> Any:
        if seed == 1:
            raise PermissionError(errno.EACCES, "Permission denied", "/dev/dri/renderD128")
        raise ValueError("no such cube")

    def step(self, action: np.ndarray) -> Any: ...

    def hold_action(self, last: np.ndarray | None) -> np.ndarray:
        return np.zeros(7, np.float32)

    def close(self) -> None: ...


def test_an_episode_ends_in_an_error_only_where_it_is_its_own() -> None:
    environment, agent = Unrenderable(), RandomAgent(7)
    assert run_episode(environment, agent, "wait", "random", 0).status == "error"
    with pytest.raises(PermissionError):
        run_episode(environment, agent, "wait", "random", 1)


@pytest.mark.parametrize(
    ("agent", "message"),
    [
        ({"planner": "planner", "actor": "actor", "memory": {"keyframs": False}}, "unknown key 'keyframs'"),
        ({"planner": "planner", "actor": "gone"}, "no weights for 'gone'"),
        ({"planner": "planner", "actor": "skills"}, "mikasa has no scripted policy 'skills'"),
    ],
)
def test_what_is_wrong_with_an_agent_is_noticed_without_an_environment(agent: dict[str, Any], message: str) -> None:
    settings = evaluation_settings(None, {"benchmark": "mikasa", "agent_configs": {"mine": agent}})
    player = BenchmarkPlayer(PlayConfig(benchmark="mikasa", agent_configs=settings.agent_configs))
    with pytest.raises((ValueError, SetupError), match=message):
        player.load(["mine"])


def test_a_video_that_does_not_fit_is_an_error_and_not_half_a_video(tmp_path: Path) -> None:
    """The limit on the size of files, which ffmpeg inherits, stands for the size of the disk."""
    video = VideoRecorder(tmp_path / "film.mp4", Film())
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4000, before[1]))
    try:
        with pytest.raises(OSError, match="File too large"):
            play_frames([video], EpisodeResult("wait", "predimem", 0, "success", 12))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert not list(tmp_path.iterdir())

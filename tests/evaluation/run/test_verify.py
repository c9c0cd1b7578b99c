"""Episodes that are played again: those that come out the same, those that do not, and players that are others."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from predimem.core.interfaces import Subscriber
from predimem.core.types import EpisodeResult
from predimem.evaluation.run.evaluation import run_evaluation
from predimem.evaluation.run.fingerprint import TrajectoryFingerprint
from predimem.evaluation.run.jobs import EvaluationError
from predimem.evaluation.run.verify import format_verification, verify_results
from tests.evaluation.fake_player import FakePlayer, play_frames
from tests.evaluation.run.test_evaluation import config


@dataclass
class OtherPlayer(FakePlayer):
    """As FakePlayer, but one seed takes fewer steps, and one other ends the same way without planning."""

    shorter_seed: int = -1
    planless_seed: int = -1

    def play(self, task: str, agent: str, seed: int, subscribers: Sequence[Subscriber]) -> EpisodeResult:
        result = super().play(task, agent, seed, ())
        if seed == self.shorter_seed:
            result = replace(result, steps=result.steps - 1)
        plans = agent != "reactive" and seed != self.planless_seed
        return play_frames(subscribers, result, planner=plans)


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("results")
    run_evaluation(config(out, agents=("reactive",)), partial(FakePlayer, error_seed=900_001))
    return out / "results.json"


def test_the_same_player_gives_the_same_episodes(results: Path) -> None:
    verification = verify_results(results, FakePlayer, sample=5, workers=2)
    assert not verification.different and verification.episodes == 8  # of 10; two ended in an error
    assert all(c.same_trajectory for c in verification.checked) and len(verification.checked) == 5
    assert 900_001 not in [c.seed for c in verification.checked]
    again = verify_results(results, FakePlayer, sample=5)
    assert again == verification
    other = verify_results(results, FakePlayer, sample=5, seed=1)
    assert [(c.task, c.seed) for c in other.checked] != [(c.task, c.seed) for c in again.checked]
    text = format_verification(again)
    assert "drawn from 8 episodes; the same outcome: 5 of 5" in text and "in every action and answer: 5 of 5" in text
    assert "kinds of CPU" not in text


def test_the_compact_file_is_enough(results: Path) -> None:
    compact = results.with_name("compact.json")
    verification = verify_results(compact, FakePlayer, sample=5)
    assert verification == verify_results(results, FakePlayer, sample=5)
    shorter = verify_results(compact, partial(OtherPlayer, shorter_seed=900_002), sample=99)
    assert [c.differences for c in shorter.different] == [("steps (was 12, is 11)",)] * 2
    assert compact.stat().st_size < results.stat().st_size / 2


def test_what_differs_is_named(results: Path) -> None:
    verification = verify_results(results, partial(OtherPlayer, shorter_seed=900_002, planless_seed=900_003), sample=99)
    assert [(c.seed, c.differences) for c in verification.different] == [(900_002, ("steps (was 12, is 11)",))] * 2
    text = format_verification(verification)
    assert "RememberColor9-VLA-v0 reactive seed 900002 differs: steps (was 12, is 11)" in text
    assert "the same outcome: 6 of 8" in text and "kinds of CPU" in text


def test_another_trajectory_to_the_same_end_is_told(tmp_path: Path) -> None:
    run_evaluation(config(tmp_path, agents=("predimem",), episodes=2), FakePlayer)
    player = partial(OtherPlayer, planless_seed=900_001)
    verification = verify_results(tmp_path / "results.json", player, sample=9)
    told = [(c.seed, c.differences, c.same_trajectory) for c in verification.checked][:2]
    assert told == [(900_000, (), True), (900_001, ("answers (was 4, is 0)", "invalid_answers (was 1, is 0)"), False)]


def test_another_player_is_refused(results: Path, tmp_path: Path) -> None:
    with pytest.raises(EvaluationError, match=r'weights\.planner \(was "abc", is "xyz"\)'):
        verify_results(results, partial(FakePlayer, weights="xyz"))
    with pytest.raises(EvaluationError, match=r'benchmark_version \(was "fake 1.0", is "fake 1.1"\)'):
        verify_results(results, partial(FakePlayer, benchmark_version="fake 1.1"))
    unknown = verify_results(results, partial(FakePlayer, benchmark_version="fake of unknown version"), sample=2)
    assert len(unknown.checked) == 2 and not unknown.different
    with pytest.raises(EvaluationError, match="at least 1 episode, got 0"):
        verify_results(results, FakePlayer, sample=0)
    data: dict[str, Any] = json.loads(results.read_text())
    data["provenance"]["play"] = {"time": {"mode": "real"}}
    path = tmp_path / "results.json"
    path.write_text(json.dumps(data))
    with pytest.raises(EvaluationError, match="real time"):
        verify_results(path, FakePlayer)


def test_the_fingerprint_is_of_what_was_done_not_of_how_long_it_took() -> None:
    def fingerprint(steps: int, planner: bool = True) -> str:
        trajectory = TrajectoryFingerprint()
        play_frames([trajectory], EpisodeResult("t", "a", 1, "success", steps), planner)
        return trajectory.value

    assert fingerprint(5) == fingerprint(5) and len(fingerprint(5)) == 16
    assert len({fingerprint(4), fingerprint(5), fingerprint(5, planner=False)}) == 3


def test_where_every_episode_was_an_error_there_is_nothing_to_verify(results: Path, tmp_path: Path) -> None:
    data = json.loads(results.read_text())
    data["episodes"] = [record for record in data["episodes"] if record["status"] == "error"]
    (tmp_path / "results.json").write_text(json.dumps(data))
    with pytest.raises(EvaluationError, match="has no episode without an error, so that there is nothing to verify"):
        verify_results(tmp_path / "results.json", FakePlayer)

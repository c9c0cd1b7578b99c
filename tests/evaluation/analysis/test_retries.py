"""Failed attempts, and what became of them: from logs made by hand, and in the simulator with fingers that slip."""

from __future__ import annotations

from typing import Any

import pytest

from predimem.agent.config import AgentConfig
from predimem.evaluation.analysis.diagnosis import diagnose, format_diagnosis
from predimem.evaluation.analysis.metrics import wilson_interval
from predimem.evaluation.analysis.retries import retry_counts, summarise_retries
from predimem.evaluation.report.episode_log import LogRecorder
from tests.evaluation.analysis.test_diagnosis import record
from tests.evaluation.logs import FIRST, PICK, SECOND, STAND, log


def test_an_attempt_is_of_the_subtask_that_was_named() -> None:
    played = log(((0, PICK, 5.0), (1, FIRST, 5.0), (2, STAND, 5.0), (2, SECOND, 5.0), (3, STAND, 5.0)), "++++")
    played.failed_attempts = [(40, "missed grasp"), (250, "dropped")]  # at 12.5 s the wrong one is named
    assert retry_counts(played) == {"failed": {"missed grasp": 1}, "stayed": 1, "passed": 1}


def test_who_goes_on_to_something_else_does_not_stay() -> None:
    played = log(((0, PICK, 5.0), (0, FIRST, 10.0)), "x...")
    played.failed_attempts = [(90, "missed grasp")]
    assert retry_counts(played) == {"failed": {"missed grasp": 1}, "stayed": 0, "passed": 0}


def test_an_attempt_at_the_last_step_was_not_stayed_with() -> None:
    played = log(((0, PICK, 5.0),), "x...")
    played.failed_attempts = [(len(played) - 1, "dropped")]
    assert retry_counts(played) == {"failed": {"dropped": 1}, "stayed": 0, "passed": 0}


def test_agents_that_name_nothing_count_with_all_attempts() -> None:
    played = log(((0, "", 10.0), (1, "", 5.0)), "+x..")
    played.failed_attempts = [(60, "missed grasp"), (250, "dropped")]
    assert retry_counts(played) == {"failed": {"missed grasp": 1, "dropped": 1}, "stayed": 0, "passed": 1}
    played.stages = ()
    assert retry_counts(played) is None


def test_saved_is_a_share_of_the_episodes_in_which_something_failed() -> None:
    def episode(status: str, **failed: int) -> dict[str, Any]:
        passed = sum(failed.values()) if status == "success" else 0
        return record("a", status, retries={"failed": failed, "stayed": sum(failed.values()), "passed": passed})

    records = [episode("success"), episode("success", dropped=2), episode("failure", dropped=1), record("a", "success")]
    found = summarise_retries(records)
    assert (found["n"], found["episodes"], found["saved"], found["attempts"]) == (3, 2, 1, 3)
    assert (found["saved_ci_low"], found["saved_ci_high"]) == wilson_interval(1, 2)
    assert (found["stayed_share"], found["passed_share"], found["kinds"]) == (1.0, 2 / 3, {"dropped": 3})
    table = next(t for t in format_diagnosis(diagnose(records, ["a"])).split("\n\n") if t.startswith("retries"))
    assert table.splitlines()[2].split() == ["a", "3", "100.0", "66.7", "2", "50.0", "[9,", "91]"]
    assert summarise_retries([record("a", "success")])["saved_share"] is None


@pytest.mark.slow
def test_what_slips_is_picked_up_again_and_the_same_seed_slips_alike() -> None:
    from predimem.evaluation.run.benchmark_player import BenchmarkPlayer
    from predimem.evaluation.run.config import PlayConfig

    agents = {"slips": AgentConfig("oracle", "skills", slip_probability=1.0), "firm": AgentConfig("oracle", "skills")}
    player, found = BenchmarkPlayer(PlayConfig(benchmark="arena", agent_configs=agents)), []
    for agent in ("firm", "slips", "slips"):
        recorder = LogRecorder()
        result = player.play("TransferChocolateButter", agent, 900_000, [recorder])
        found.append((result.status, result.steps, retry_counts(recorder.log), recorder.log.failed_attempts))
    player.close()
    assert found[0][0] == "success" and found[0][2] == {"failed": {}, "stayed": 0, "passed": 0}
    counts = found[1][2]
    assert counts and counts["failed"]["dropped"] >= 1 and counts["stayed"] >= 1
    assert found[1] == found[2]

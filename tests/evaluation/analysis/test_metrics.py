"""The statistics of an evaluation against independent references and exact numbers."""

from __future__ import annotations

import math

import pytest

from predimem.core.types import EpisodeResult
from predimem.evaluation.analysis.metrics import (
    csr,
    mcnemar,
    mean_interval,
    mean_success_interval,
    paired_difference,
    tsr,
    wilson_interval,
)
from predimem.evaluation.report.summary import compare, summarise, summarise_means


def episode(status: str, passed: int = 0, total: int = 4, seed: int = 0) -> EpisodeResult:
    return EpisodeResult("task", "agent", seed, status, 10, passed, total)  # type: ignore[arg-type]


def test_wilson_known_value() -> None:
    # Newcombe (1998), Statistics in Medicine 17, 857-872, Table I: 81 of 263, Wilson without correction.
    assert wilson_interval(81, 263) == pytest.approx((0.2553, 0.3662), abs=5e-5)


def test_wilson_without_episodes_knows_nothing() -> None:
    assert wilson_interval(0, 0) == (0.0, 1.0)
    with pytest.raises(ValueError, match="6 of 5"):
        wilson_interval(6, 5)


def test_tsr_and_csr_keep_errors_apart() -> None:
    episodes = [episode("success", 4), episode("failure", 1), episode("failure", 2), episode("error", 3)]
    assert tsr(episodes) == pytest.approx(1 / 3)
    assert csr(episodes) == pytest.approx((1 + 0.25 + 0.5) / 3)
    assert tsr([episode("error")]) is None
    assert csr([]) is None


def test_csr_refuses_impossible_stages() -> None:
    with pytest.raises(ValueError, match="5 of 4 stages"):
        csr([episode("failure", 5)])


@pytest.mark.parametrize("b,c", [(0, 0), (1, 0), (6, 1), (3, 3), (85, 2), (0, 20)])
def test_mcnemar_equals_the_formula(b: int, c: int) -> None:
    first = [True] * b + [False] * c + [True] * 5 + [False] * 4
    second = [False] * b + [True] * c + [True] * 5 + [False] * 4
    paired = mcnemar(first, second)
    expected = min(1.0, 2 * sum(math.comb(b + c, i) for i in range(min(b, c) + 1)) / 2 ** (b + c))
    assert (paired.n, paired.only_first, paired.only_second) == (b + c + 9, b, c)
    assert paired.p_value == pytest.approx(expected, rel=1e-9)


def test_mcnemar_needs_pairs() -> None:
    with pytest.raises(ValueError, match="2 and 1"):
        mcnemar([True, False], [True])


def record(task: str, agent: str, seed: int, status: str, **changes: object) -> dict:
    figures = {"plan_age_steps": 2.0, "stale_action_ratio": 0.1, "held_action_ratio": 0.2, "wall_s": 1.0}
    counts = {
        "s1_ms": [10.0, 30.0],
        "s2_ms": [],
        "answers": 4,
        "invalid_answers": 1,
        "refusals": 3,
        "homings": 2,
        "keyframes": 2,
    }
    result = {"task": task, "agent": agent, "seed": seed, "status": status, "steps": 10, "message": ""}
    stages = {"stages_passed": int(status == "success"), "stages_total": 1, "metrics": {}}
    return result | stages | figures | counts | changes


def test_summary_of_one_cell() -> None:
    records = [
        record("t", "a", 0, "success", metrics={"wrong_first_touch": 0.0, "d": None}, s1_ms=[5.0]),
        record("t", "a", 1, "failure", metrics={"wrong_first_touch": 1.0, "d": 0.5}, plan_age_steps=None),
        record("t", "a", 2, "error", message="boom\ndetails", steps=0, s1_ms=[9999.0]),
    ]
    cell = summarise(records)
    assert (cell["success"], cell["n"], cell["successes"], cell["errors"]) == (0.5, 2, 1, 1)
    assert (cell["ci_low"], cell["ci_high"]) == wilson_interval(1, 2)
    assert cell["error_messages"] == ["boom"]
    assert (cell["wrong_first_touch"], cell["metrics"]["d"]) == (0.5, 0.5)
    assert (cell["steps_mean"], cell["plan_age_mean"], cell["s1_ms_median"]) == (10, 2.0, 10.0)
    assert cell["s2_ms_median"] is None
    assert (cell["refusals"], cell["homings"]) == (9, 6)
    assert cell["invalid_answers"] == 3  # an invalid answer counts whether or not the episode crashed later


def test_means_and_comparisons_use_only_scored_episodes() -> None:
    records = [record("t", "a", s, "success") for s in range(3)] + [record("u", "a", s, "failure") for s in range(2)]
    records += [record("t", "b", s, "error" if s == 0 else "failure") for s in range(3)]
    records += [record("u", "b", s, "error") for s in range(2)]
    means = summarise_means(records, ["a", "b"], ["t", "u"])
    assert (means["a"]["success"], means["a"]["tasks"], means["a"]["n"]) == (0.5, 2, 5)
    assert (means["b"]["success"], means["b"]["tasks"], means["b"]["errors"]) == (0.0, 1, 3)
    paired = compare(records, ["t", "u"], ["a", "b"])
    pair = {"reference": "a", "n": 2, "only_reference": 2, "only_other": 0, "p_value": 0.5}
    cell = paired["results"]["t"]["b"]
    assert {name: cell[name] for name in pair} == pair
    assert (cell["csr_difference"], cell["csr_difference_ci_high"]) == (1.0, 1.0)
    assert -0.6 < cell["csr_difference_ci_low"] < 0.6  # two pairs say little
    assert paired["results"]["u"]["b"]["n"] == 0 and paired["results"]["u"]["b"]["csr_difference"] is None
    assert paired["results"]["all tasks"]["b"]["n"] == 2


def test_episodes_are_paired_by_their_seeds() -> None:
    """The agents played them in another order, and one of them has an error and one did not play a seed."""
    outcomes = {
        "a": {0: "success", 1: "failure", 2: "success", 3: "failure", 4: "success"},
        "b": {3: "failure", 4: "success", 2: "error", 1: "success", 0: "success", 9: "failure"},
    }
    records = [record("t", agent, seed, s) for agent, played in outcomes.items() for seed, s in played.items()]
    cell = compare(records, ["t"], ["a", "b"])["results"]["t"]["b"]
    assert (cell["n"], cell["only_reference"], cell["only_other"]) == (4, 0, 1)
    assert cell["csr_difference"] == -0.25
    difference = paired_difference({"t": [1, 0, 0, 1]}, {"t": [1, 1, 0, 1]})  # seeds 0, 1, 3 and 4
    assert (cell["csr_difference_ci_low"], cell["csr_difference_ci_high"]) == (difference.low, difference.high)


def test_a_task_counts_as_much_as_another_whatever_its_episodes() -> None:
    """Of eight episodes and of two: means and differences are of tasks, not of episodes."""
    shares = {("t", "a"): [4] * 8, ("t", "b"): [4] * 8, ("u", "a"): [3] * 2, ("u", "b"): [1] * 2}  # stages of four
    records = [
        record(task, agent, seed, "success" if share == 4 else "failure", stages_passed=share, stages_total=4)
        for (task, agent), played in shares.items()
        for seed, share in enumerate(played)
    ]
    means = summarise_means(records, ["a", "b"], ["t", "u"])
    assert [means[agent]["success"] for agent in "ab"] == [0.5, 0.5]
    assert [means[agent]["csr"] for agent in "ab"] == [0.875, 0.625]
    assert (means["a"]["ci_low"], means["a"]["ci_high"]) == mean_success_interval({"t": [True] * 8, "u": [False] * 2})
    of_shares = mean_interval({"t": [1.0] * 8, "u": [0.75] * 2})
    assert (means["a"]["csr_ci_low"], means["a"]["csr_ci_high"]) == of_shares
    cell = compare(records, ["t", "u"], ["a", "b"])["results"]["all tasks"]["b"]
    assert cell["n"] == 10 and cell["csr_difference"] == 0.25
    assert cell["csr_difference_ci_low"] < 0.25 < cell["csr_difference_ci_high"]


def test_a_comparison_is_with_its_own_reference_and_by_category() -> None:
    played = {"a": 3, "b": 1, "c": 2}  # of four stages passed, in each episode
    records = [
        record(task, agent, seed, "failure", stages_passed=passed, stages_total=4)
        for task in "tu"
        for agent, passed in played.items()
        for seed in range(2)
    ]
    compared = compare(records, ["t", "u"], list("abc"), {"c": "b", "b": "x"}, {"one": ["t"], "none": ["v"]})
    assert list(compared["results"]) == ["t", "u", "one", "all tasks"]
    for cells in compared["results"].values():
        assert (cells["b"]["reference"], cells["b"]["csr_difference"]) == ("a", 0.5)  # x was not played
        assert (cells["c"]["reference"], cells["c"]["csr_difference"]) == ("b", -0.25)
    assert compared["results"]["one"]["b"]["n"] == 2 and compared["results"]["all tasks"]["b"]["n"] == 4

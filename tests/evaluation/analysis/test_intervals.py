"""Intervals of means over tasks: exact numbers, and how often they cover the truth in a simulation."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from predimem.evaluation.analysis.metrics import (
    interval_method,
    mean_interval,
    mean_success_interval,
    paired_difference,
    wilson_interval,
)

TASKS, EVALUATIONS = 26, 500
Rates = Callable[[np.random.Generator], np.ndarray]

# How likely each task's stages are to be passed, one after the other.
SUITES: dict[str, Rates] = {
    "even": lambda rng: rng.uniform(0.5, 1.0, TASKS),
    "easy or hard": lambda rng: np.where(
        np.arange(TASKS) % 2, rng.uniform(0.3, 0.6, TASKS), rng.uniform(0.95, 1, TASKS)
    ),
    "nearly perfect": lambda rng: rng.uniform(0.985, 1.0, TASKS),
    "two tasks fail": lambda rng: np.where(np.arange(TASKS) % 13, 1.0, 0.7),
    "alike": lambda rng: np.full(TASKS, 0.85),
    "poor": lambda rng: rng.uniform(0.3, 0.7, TASKS),
}


def test_the_interval_in_numbers() -> None:
    # Of 2, 3 and 5 episodes (n = 9 / (1/2 + 1/3 + 1/5)) the mean of the tasks is 1/2; one task has few.
    low, high = mean_interval({"a": [0.0, 1.0], "b": [1.0, 0.0, 0.5], "c": [0.5] * 5})
    n = 9 / (1 / 2 + 1 / 3 + 1 / 5)
    variance = (0.25 + 2 / 3 * 0.25 + 0) / 3
    half = 1.959964 * math.sqrt(n * variance + 2 * 0.25) / (n + 2)
    assert (low, high) == pytest.approx((0.5 - half, 0.5 + half), abs=1e-6)
    # Within tasks, which are far apart: of five episodes each, variances 0.2 * 1.25 and 0.
    low, high = mean_interval({"a": [1.0, 1.0, 1.0, 0.0, 0.0], "b": [0.4] * 5})
    half = 1.959964 * math.sqrt(10 * (0.3 / 2) + 2 * 0.25) / 12
    assert (low, high) == pytest.approx((0.5 - half, 0.5 + half), abs=1e-6)
    # Of twenty and of five, each task as heavy as the other: n = 4 / (1/20 + 1/5), and no variance within them.
    low, high = mean_interval({"a": [1.0] * 20, "b": [0.0] * 5})
    half = 1.959964 * math.sqrt(2 * 0.25) / 18
    assert (low, high) == pytest.approx((0.5 - half, 0.5 + half), abs=1e-6)
    difference = paired_difference({"a": [1.0] * 20, "b": [0.5] * 5}, {"a": [1.0] * 20, "b": [0.0] * 5})
    assert difference.mean == 0.25 and difference.low < 0.25 < difference.high


def test_an_interval_has_width_where_all_episodes_are_alike() -> None:
    for value in (0.0, 0.3, 1.0):
        for n in (1, 2, 20):
            low, high = mean_interval({"a": [value] * n, "b": [value] * n})
            assert low <= value <= high and high - low > 1 / (2 * n + 2)
    assert mean_interval({"a": [1.0] * 13, "b": [1.0] * 13}) == wilson_interval(26, 26)
    assert mean_interval({"a": [0.0], "b": [0.0] * 3}) == wilson_interval(0, 3)  # 4 / (1 + 1/3)
    assert paired_difference({"a": [1.0] * 9}, {"a": [0.0] * 9})[1:] == (2 * wilson_interval(9, 9).low - 1, 1.0)
    assert mean_interval({}) == mean_interval({"a": []}) == (0.0, 1.0)


def test_of_one_task_success_has_wilsons_interval() -> None:
    assert mean_success_interval({"a": [True] * 28 + [False] * 2}) == wilson_interval(28, 30)
    assert interval_method([30]).startswith("TSR by Wilson, CSR normal")


def test_the_method_is_named() -> None:
    assert "variance within tasks" in interval_method([5, 20])
    assert "variance of all episodes, as a task has fewer than 5" in interval_method([20, 4])


def test_a_paired_difference_uses_the_pairs() -> None:
    # As far apart as 0 and 1 from episode to episode, but each pair differs by exactly 0.1.
    second = {"t": [0.0, 0.9] * 50, "u": [0.4, 0.5] * 50}
    first = {task: [value + 0.1 for value in values] for task, values in second.items()}
    mean, low, high = paired_difference(first, second)
    assert mean == pytest.approx(0.1) and 0.07 < low < 0.1 <= high < 0.13
    assert paired_difference({"t": []}, {"t": []}) == (0.0, -1.0, 1.0)
    with pytest.raises(ValueError, match="not paired"):
        paired_difference({"t": [1.0]}, {"t": [1.0, 2.0]})


@pytest.mark.slow
@pytest.mark.parametrize("suite", SUITES)
@pytest.mark.parametrize("n", [1, 2, 5, 20])
def test_intervals_cover_the_mean_over_tasks(suite: str, n: int) -> None:
    """Each task has two to eight stages; an episode goes on until it fails one. A share of 500 has a standard error of
    1 %, and the seeds are fixed."""
    rng = np.random.default_rng([n, list(SUITES).index(suite)])
    passes, stages = SUITES[suite](rng), rng.integers(2, 9, TASKS)
    tsr = float(np.mean(passes**stages))
    csr = float(np.mean([sum(p**i for i in range(1, k + 1)) / k for p, k in zip(passes, stages, strict=True)]))
    covered = np.zeros(2)
    for _ in range(EVALUATIONS):
        passed = rng.random((TASKS, n, 8)) < passes[:, None, None]
        shares = {str(task): np.cumprod(passed[task, :, :k], axis=1).sum(axis=1) / k for task, k in enumerate(stages)}
        intervals = (
            (tsr, mean_success_interval({task: (s == 1).tolist() for task, s in shares.items()})),
            (csr, mean_interval({task: s.tolist() for task, s in shares.items()})),
        )
        covered += [low <= truth <= high for truth, (low, high) in intervals]
    assert (covered / EVALUATIONS >= 0.93).all(), covered / EVALUATIONS

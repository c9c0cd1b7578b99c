"""The statistics of an evaluation: TSR and CSR (002 Eq. 4 and 5), intervals, paired comparisons.

Errors are kept apart everywhere: an episode that crashed says nothing about the policy, so it is
in no numerator and in no denominator, and is counted and listed by itself.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from predimem.core.types import EpisodeResult


class Interval(NamedTuple):
    low: float
    high: float


@dataclass(frozen=True)
class Paired:
    """Two agents on the same seeds. p_value: two-sided exact McNemar test of equal success."""

    n: int
    only_first: int
    only_second: int
    p_value: float


class Difference(NamedTuple):
    """A difference of two means and its interval."""

    mean: float
    low: float
    high: float


def tsr(results: Sequence[EpisodeResult]) -> float | None:
    """Task success rate (Eq. 4): the share of episodes in which every stage was passed.

    None when no episode was finished without an error.
    """
    scored = [r.status == "success" for r in results if r.status != "error"]
    return sum(scored) / len(scored) if scored else None


def csr(results: Sequence[EpisodeResult]) -> float | None:
    """Cumulative success rate (Eq. 5): the mean share of stages that were passed; None as in `tsr`."""
    scored = [stage_share(r) for r in results if r.status != "error"]
    return sum(scored) / len(scored) if scored else None


def stage_share(result: EpisodeResult) -> float:
    """The share of its stages that one episode passed: 1 where the whole task succeeded."""
    if result.status == "success":
        return 1.0
    if not 0 <= result.stages_passed <= result.stages_total or result.stages_total < 1:
        raise ValueError(
            f"{result.task} seed {result.seed}: {result.stages_passed} of {result.stages_total} stages "
            "passed; expected 0 <= passed <= total and at least one stage"
        )
    return result.stages_passed / result.stages_total


def wilson_interval(successes: int, n: int, confidence: float = 0.95) -> Interval:
    """Wilson's score interval of a proportion (without continuity correction); (0, 1) for n = 0."""
    if not 0 <= successes <= n:
        raise ValueError(f"expected 0 <= successes <= n, got {successes} of {n}")
    if n == 0:
        return Interval(0.0, 1.0)
    z = NormalDist().inv_cdf(0.5 + confidence / 2)
    p, zz = successes / n, z * z
    centre = (p + zz / (2 * n)) / (1 + zz / n)
    half = z / (1 + zz / n) * math.sqrt(p * (1 - p) / n + zz / (4 * n * n))
    low = 0.0 if successes == 0 else max(0.0, centre - half)
    high = 1.0 if successes == n else min(1.0, centre + half)
    return Interval(low, high)


def mean_of_proportions(counts: Sequence[tuple[int, int]], confidence: float = 0.95) -> Interval:
    """Interval of the unweighted mean of several tasks' success rates, from (successes, n) each.

    The tasks' Wilson limits are combined by squaring and adding their distances (Newcombe 1998; Zou
    and Donner 2008). Unlike the bootstrap it does not shrink to a point where every episode
    succeeded, which matters at few episodes a task; with one task it is Wilson's interval.
    """
    if not counts:
        return Interval(0.0, 1.0)
    below = above = mean = 0.0
    for successes, n in counts:
        low, high = wilson_interval(successes, n, confidence)
        p = successes / n if n else 0.5
        mean, below, above = mean + p, below + (p - low) ** 2, above + (high - p) ** 2
    k = len(counts)
    low, high = mean / k - math.sqrt(below) / k, mean / k + math.sqrt(above) / k
    return Interval(max(0.0, low), min(1.0, high))


def bootstrap_mean(
    values: Mapping[str, Sequence[float]], confidence: float = 0.95, resamples: int = 10_000, seed: int = 0
) -> Interval:
    """Percentile bootstrap of the mean over tasks of each task's mean.

    values: task -> one number per episode. Episodes are resampled within their task (the tasks are
    fixed: the interval speaks of these tasks, not of others like them). Tasks without episodes are
    left out; (0, 1) if none is left.
    """
    tasks = [np.asarray(v, float) for v in values.values() if len(v)]
    if not tasks:
        return Interval(0.0, 1.0)
    generator = np.random.default_rng(seed)
    means = np.zeros(resamples)
    for episodes in tasks:
        picks = generator.integers(len(episodes), size=(resamples, len(episodes)))
        means += episodes[picks].mean(axis=1) / len(tasks)
    tail = 50 * (1 - confidence)
    low, high = np.percentile(means, [tail, 100 - tail])
    return Interval(float(low), float(high))


def mcnemar(first: Sequence[bool], second: Sequence[bool]) -> Paired:
    """Exact McNemar test on paired outcomes: first[i] and second[i] are of the same task and seed."""
    if len(first) != len(second):
        raise ValueError(f"outcomes are not paired: {len(first)} and {len(second)} of them")
    b = sum(x and not y for x, y in zip(first, second, strict=True))
    c = sum(y and not x for x, y in zip(first, second, strict=True))
    tail = sum(math.comb(b + c, i) for i in range(min(b, c) + 1))
    p_value = min(1.0, 2 * tail / 2 ** (b + c))  # exact integers until the division
    return Paired(len(first), b, c, p_value)


def paired_bootstrap(
    first: Mapping[str, Sequence[float]],
    second: Mapping[str, Sequence[float]],
    confidence: float = 0.95,
    resamples: int = 10_000,
    seed: int = 0,
) -> Difference:
    """How much larger `first` is than `second`: mean over tasks of the mean difference of their pairs.

    task -> one number per episode; first[task][i] and second[task][i] are of the same seed. Pairs are resampled
    within their task, and tasks without pairs are left out; without any pair nothing is known: (0, -1, 1).
    """
    if {task: len(v) for task, v in first.items()} != {task: len(v) for task, v in second.items()}:
        raise ValueError("values are not paired: expected the same tasks with the same number of episodes")
    pairs = {task: np.subtract(values, second[task]).tolist() for task, values in first.items() if len(values)}
    if not pairs:
        return Difference(0.0, -1.0, 1.0)
    mean = float(np.mean([np.mean(values) for values in pairs.values()]))
    return Difference(mean, *bootstrap_mean(pairs, confidence, resamples, seed))

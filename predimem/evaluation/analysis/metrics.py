"""Works out the statistics of an evaluation: TSR and CSR, intervals, paired comparisons.

TSR and CSR are Eq. 4 and 5 of RoboMemArena (arXiv:2605.10921).

Errors are kept apart everywhere: an episode that crashed says nothing about the policy, so it is in no numerator and in
no denominator, and is counted and listed by itself.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from predimem.core.types import EpisodeResult

FEW_EPISODES = 5  # with fewer of them the variance within a task is not known well enough
PAIRED_INTERVAL = (
    "normal with one pair added at either end (Wilson where all are at one end), variance within tasks, or that of all "
    f"pairs where a task has fewer than {FEW_EPISODES}"
)
Z_95 = NormalDist().inv_cdf(0.975)


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


def wilson_interval(successes: int, n: int) -> Interval:
    """Wilson's 95 % score interval of a proportion (without continuity correction); (0, 1) for n = 0."""
    from scipy.stats import binomtest

    if not 0 <= successes <= n:
        raise ValueError(f"expected 0 <= successes <= n, got {successes} of {n}")
    if n == 0:
        return Interval(0.0, 1.0)
    interval = binomtest(successes, n).proportion_ci(0.95, method="wilson")
    return Interval(float(interval.low), float(interval.high))


def mean_interval(values: Mapping[str, Sequence[float]], ends: tuple[float, float] = (0.0, 1.0)) -> Interval:
    """95 % interval of the mean over tasks of each task's mean, as `interval_method` describes it.

    values: task -> one number per episode, each between `ends`. The tasks are fixed: the interval speaks of these
    tasks, not of others like them. Tasks without episodes are left out; it is `ends` if none is left.

    It is the normal interval of a stratified mean after one episode was added at either end, as Bonett and Price
    (2012) do for paired proportions and Agresti and Coull (1998) for a single one. So it has some width even where all
    episodes went the same way. The mean of the added episodes moves the centre; the interval is extended by as much
    on the other side. With few episodes a task its own variance is hardly known, and that of all episodes stands in,
    which is the larger one wherever tasks differ. Where every episode is at the same end it is Wilson's interval, which
    is longer there.
    """
    tasks = [np.asarray(v, float) for v in values.values() if len(v)]
    if not tasks:
        return Interval(*ends)
    episodes = np.concatenate(tasks)
    weights = np.concatenate([np.full(len(task), 1 / (len(tasks) * len(task))) for task in tasks])
    mean = float(weights @ episodes)
    n = 1 / float(weights @ weights)  # the number of episodes, where each task has as many
    centre = (n * mean + sum(ends)) / (n + 2)
    if episodes.min() == episodes.max() and episodes[0] in ends:
        low, high = wilson_interval(round(n) if mean > centre else 0, round(n))
        return Interval(*(ends[0] + (ends[1] - ends[0]) * limit for limit in (low, high)))
    if _are_few([len(task) for task in tasks]):
        variance = float(weights @ (episodes - mean) ** 2)
    else:
        variance = n * sum(float(task.var(ddof=1)) / len(task) for task in tasks) / len(tasks) ** 2
    squares = n * (variance + (mean - centre) ** 2) + sum((end - centre) ** 2 for end in ends)
    half = Z_95 * math.sqrt(squares) / (n + 2)
    return Interval(max(ends[0], min(mean, centre) - half), min(ends[1], max(mean, centre) + half))


def mean_success_interval(successes: Mapping[str, Sequence[bool]]) -> Interval:
    """The same of TSR: task -> which episodes succeeded. Of a single task it is Wilson's."""
    if len(successes) == 1:
        (only,) = successes.values()
        return wilson_interval(sum(only), len(only))
    return mean_interval(successes)


def interval_method(episodes: Sequence[int]) -> str:
    """How the intervals over tasks with so many episodes each are made, for results and tables."""
    variance = f"of all episodes, as a task has fewer than {FEW_EPISODES}" if _are_few(episodes) else "within tasks"
    added = f"normal with one episode added at either end (Wilson where all are at one end), variance {variance}"
    return f"TSR by Wilson, CSR {added}" if len(episodes) == 1 else added


def _are_few(episodes: Sequence[int]) -> bool:
    return min(episodes, default=0) < FEW_EPISODES


def mcnemar(first: Sequence[bool], second: Sequence[bool]) -> Paired:
    """Exact McNemar test on paired outcomes: first[i] and second[i] are of the same task and seed."""
    from scipy.stats import binomtest

    if len(first) != len(second):
        raise ValueError(f"outcomes are not paired: {len(first)} and {len(second)} of them")
    b = sum(x and not y for x, y in zip(first, second, strict=True))
    c = sum(y and not x for x, y in zip(first, second, strict=True))
    p_value = float(binomtest(b, b + c).pvalue) if b + c else 1.0
    return Paired(len(first), b, c, p_value)


def paired_difference(first: Mapping[str, Sequence[float]], second: Mapping[str, Sequence[float]]) -> Difference:
    """How much larger `first` is than `second`: mean over tasks of the mean difference of their pairs.

    task -> one number in [0, 1] per episode; first[task][i] and second[task][i] are of the same seed. Tasks without
    pairs are left out; without any pair nothing is known: (0, -1, 1).
    """
    if {task: len(v) for task, v in first.items()} != {task: len(v) for task, v in second.items()}:
        raise ValueError("values are not paired: expected the same tasks with the same number of episodes")
    pairs = {task: np.subtract(values, second[task]).tolist() for task, values in first.items() if len(values)}
    if not pairs:
        return Difference(0.0, -1.0, 1.0)
    mean = float(np.mean([np.mean(values) for values in pairs.values()]))
    return Difference(mean, *mean_interval(pairs, ends=(-1.0, 1.0)))

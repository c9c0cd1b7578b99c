"""The figures of a planner, from counts of single episodes, so that planners can be compared on the episodes of both.

Counts of an episode: figure -> (sum, number of things that it is a sum over). A figure of a planner is the sum over its
episodes divided by the number; F1 follows from precision and recall.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import fmean, stdev
from typing import Any, NamedTuple

import numpy as np

Counts = Mapping[str, tuple[float, float]]
Episodes = Mapping[Any, Counts]  # episode -> its counts
PRECISION, RECALL, F1 = "keyframe precision", "keyframe recall", "keyframe F1"
ACCURACY, AT_CHANGES, NEIGHBOURS, TSR, CSR = "subtask accuracy", "at changes", "neighbours alike", "TSR", "CSR"
FIGURES = (ACCURACY, AT_CHANGES, PRECISION, RECALL, F1, TSR, CSR, NEIGHBOURS)


class Difference(NamedTuple):
    """A mean difference over training seeds; low and high are None where there is one seed alone."""

    mean: float
    low: float | None
    high: float | None
    trainings: int


def pooled(episodes: Episodes) -> dict[str, float | None]:
    """All figures over these episodes; None where there is nothing to count."""
    sums: dict[str, list[float]] = {}
    for counts in episodes.values():
        for name, (total, number) in counts.items():
            entry = sums.setdefault(name, [0.0, 0.0])
            entry[0] += total
            entry[1] += number
    found = {name: total / number for name, (total, number) in sums.items() if number}
    if PRECISION in found and RECALL in found:
        both = found[PRECISION] + found[RECALL]
        found[F1] = 2 * found[PRECISION] * found[RECALL] / both if both else 0.0
    return {name: found.get(name) for name in FIGURES}


def spread(values: Sequence[float | None]) -> tuple[float, float | None, int] | None:
    """(mean, standard deviation, number) of those that are known; a single one has no deviation."""
    known = [value for value in values if value is not None]
    if not known:
        return None
    return fmean(known), stdev(known) if len(known) > 1 else None, len(known)


def paired(planners: Mapping[int, Episodes], references: Mapping[int, Episodes], figure: str) -> Difference | None:
    """How much larger a figure is for `planners` than for `references`: training seed -> its episodes.

    Of each training seed that both have, the difference over the episodes that both have. The 95 % interval is
    Student's t over training seeds: it speaks of other trainings on these data and episodes. None without any pair.
    """
    from scipy.stats import t

    differences = []
    for seed in planners.keys() & references.keys():
        common = planners[seed].keys() & references[seed].keys()
        ours, theirs = (pooled({e: of[seed][e] for e in common})[figure] for of in (planners, references))
        if ours is not None and theirs is not None:
            differences.append(ours - theirs)
    if not differences:
        return None
    mean, n = fmean(differences), len(differences)
    if n == 1:
        return Difference(mean, None, None, n)
    half = float(t.ppf(0.975, n - 1)) * stdev(differences) / math.sqrt(n)
    return Difference(mean, mean - half, mean + half, n)


def replay_counts(scores: Mapping[str, Any]) -> dict[str, tuple[float, float]]:
    """Of the scores of one episode (`planner.tracking.TrackingScores`)."""
    counts = scores["counts"]

    def of(name: str) -> tuple[float, float]:
        number = counts.get(name, 0)
        return (float(round(scores[name] * number)), float(number)) if number else (0.0, 0.0)

    inside, boundary = of("inside"), of("boundary")
    everything = (inside[0] + boundary[0], inside[1] + boundary[1])
    keyframes = {PRECISION: of("keyframe_precision"), RECALL: of("keyframe_recall")}
    return {ACCURACY: everything, AT_CHANGES: boundary} | keyframes


def neighbour_counts(records: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, tuple[float, float]]]:
    """episode -> how many of its keyframes have a nearest state, among other episodes' keyframes, of their subtask.

    records: those of one planner (`states.StatesReader`).
    """
    owners, labels, states = [], [], []
    for record in records:
        for _, subtask, state in record["keyframes"]:
            owners.append(record["episode"])
            labels.append(subtask)
            states.append(state)
    if len(set(owners)) < 2:
        return {}
    vectors, whose = np.array(states), np.array(owners)
    distances = np.square(vectors).sum(1) - 2 * vectors @ vectors.T  # of each row, up to what is the same for all
    distances[whose[:, None] == whose] = np.inf
    nearest = distances.argmin(1)
    found: dict[str, list[float]] = {}
    for index, owner in enumerate(owners):
        entry = found.setdefault(owner, [0.0, 0.0])
        entry[0] += labels[nearest[index]] == labels[index]
        entry[1] += 1
    return {owner: {NEIGHBOURS: (alike, number)} for owner, (alike, number) in found.items()}


def played_counts(records: Iterable[Mapping[str, Any]]) -> dict[str, dict[tuple[str, int], Counts]]:
    """agent -> (task, seed) -> success and stages passed, of the records of `predimem eval`; errors are left out."""
    found: dict[str, dict[tuple[str, int], Counts]] = {}
    for record in records:
        episodes = found.setdefault(record["agent"], {})
        key = record["task"], record["seed"]
        episodes.pop(key, None)  # of an episode that was played again the last record counts
        if record["status"] != "error":
            passed = record["stages_passed"] / record["stages_total"]
            episodes[key] = {TSR: (float(record["status"] == "success"), 1.0), CSR: (passed, 1.0)}
    return found


def read_lines(path: Path) -> list[dict[str, Any]]:
    """The whole lines of a journal that may be in use; none where it is not there."""
    text = path.read_text() if path.is_file() else ""
    return [json.loads(line) for line in text[: text.rfind("\n") + 1].splitlines()]

"""Measures S2 by itself in the episodes that were played: its subtask labels, its switches and its keyframes.

Each episode gives counts and lists, so that episodes can be pooled (`pooled`); `rates` makes rates of them at the end.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import median
from typing import Any

from predimem.evaluation.analysis.subtask_labels import EARLY, TOLERANCE_S, is_right, judged_runs
from predimem.evaluation.report.episode_log import EpisodeLog

KEYFRAME_TOLERANCE_S = 0.5  # between a keyframe that was stored and one of Eq. 1-3

Counts = dict[str, Any]


def planner_counts(log: EpisodeLog, true_keyframes: Sequence[int] | None = None) -> Counts | None:
    """The counts of one episode; None if there is no S2, or if the environment does not explain its stages.

    true_keyframes: the steps of the keyframes by Eq. 1-3 of RoboMemArena (arXiv:2605.10921) on this episode's
    trajectory. With None keyframes are not counted. The counts are:

    boundary, inside: answers to what was seen within 1 s of a true switch, and elsewhere
    boundary_right, inside_right: those of them that named the subtask that was due in what they had seen
    invalid: answers that named no subtask; they count as wrong
    switches: how often a stage was passed with another one to follow
    delays_s: how much later than that S2 named the next stage (negative: sooner)
    missed: how often S2 did not name it at all while it was due
    false_starts: how often S2 named the next stage for a second or more, and gave it up again before it was due
    keyframes: those in memory at the end; keyframes_right: those of them within 0.5 s of a true one
    true_keyframes: the true ones; true_keyframes_kept: those of them within 0.5 s of one in memory
    """
    if not log.stages or not log.has_planner:
        return None
    counts: Counts = dict.fromkeys(("boundary", "boundary_right", "inside", "inside_right", "invalid"), 0)
    switches = [log.due_from(stage) for stage in range(1, len(log.stages))]
    switches = [step for step in switches if step < len(log)]
    for answer in log.answers:
        step = min(answer.asked_step, len(log) - 1)
        near = any(abs(step - switch) <= TOLERANCE_S * log.hz for switch in switches)
        where = "boundary" if near else "inside"
        counts[where] += 1
        counts[f"{where}_right"] += answer.subtask is not None and is_right(log, answer.subtask, step)
        counts["invalid"] += answer.subtask is None
    delays = [_delay_s(log, stage) for stage in range(1, len(switches) + 1)]
    counts["switches"] = len(delays)
    counts["missed"] = delays.count(None)
    counts["delays_s"] = [round(delay, 3) for delay in delays if delay is not None]
    early = [(start, end) for start, end, judgement in judged_runs(log) if judgement == EARLY and end < len(log)]
    long = [(start, end) for start, end in early if end - start >= TOLERANCE_S * log.hz]
    counts["false_starts"] = sum(log.due[end] == log.due[start] for start, end in long)
    return counts | (_keyframe_counts(log, true_keyframes) if true_keyframes is not None else {})


def pooled(counts: Iterable[Mapping[str, Any] | None]) -> Counts:
    """The counts of several episodes added up; lists are put behind each other."""
    total: Counts = {}
    for entry in counts:
        for name, value in (entry or {}).items():
            total[name] = total.get(name, type(value)()) + value
    return total


def rates(counts: Mapping[str, Any]) -> dict[str, Any]:
    """The figures of pooled counts. What did not occur is None.

    premature, late: the shares of all switches that came more than 1 s too soon or too late
    delay_median_s: the median over all switches that came
    """
    if not counts:
        return {}
    delays, switches = counts["delays_s"], counts["switches"]
    right, answers = (counts[f"boundary{x}"] + counts[f"inside{x}"] for x in ("_right", ""))
    return {
        "answers": answers,
        "invalid": counts["invalid"],
        "accuracy": _share(right, answers),
        "accuracy_boundary": _share(counts["boundary_right"], counts["boundary"]),
        "accuracy_inside": _share(counts["inside_right"], counts["inside"]),
        "answers_boundary": counts["boundary"],
        "switches": switches,
        "premature": _share(sum(delay < -TOLERANCE_S for delay in delays), switches),
        "late": _share(sum(delay > TOLERANCE_S for delay in delays), switches),
        "missed": _share(counts["missed"], switches),
        "false_starts": counts["false_starts"],
        "delay_median_s": median(delays) if delays else None,
        "keyframe_precision": _share(counts.get("keyframes_right", 0), counts.get("keyframes", 0)),
        "keyframe_recall": _share(counts.get("true_keyframes_kept", 0), counts.get("true_keyframes", 0)),
        "keyframes": counts.get("keyframes"),
        "true_keyframes": counts.get("true_keyframes"),
    }


def _delay_s(log: EpisodeLog, stage: int) -> float | None:
    """The time from when `stage` became due until S2 named it; negative if S2 has named it without a break before."""
    due, over = log.due_from(stage), log.due_from(stage + 1)
    for start, end, name in log.spans():
        if end > due and start < max(over, due + 1) and log.is_called(stage, name):
            return (start - due) / log.hz
    return None


def _keyframe_counts(log: EpisodeLog, true: Sequence[int]) -> Counts:
    near = KEYFRAME_TOLERANCE_S * log.hz
    stored = log.memory_at(len(log) - 1)
    return {
        "keyframes": len(stored),
        "keyframes_right": sum(any(abs(k - t) <= near for t in true) for k in stored),
        "true_keyframes": len(true),
        "true_keyframes_kept": sum(any(abs(k - t) <= near for k in stored) for t in true),
    }


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None

"""Attempts that failed, and what became of them: is the subtask tried again, and is the episode saved?

An attempt failed where the hand closed on nothing, dropped what it carried, or left a drawer or a door that it had
moved before its goal, while the subtask that was due (or picking up again what it needs) was named; see
`suites.arena_attempts`. S2 stays where it names that for most of the following seconds, or until the stage is passed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from predimem.evaluation.analysis import subtask_labels as n
from predimem.evaluation.analysis.metrics import wilson_interval
from predimem.evaluation.report.episode_log import EpisodeLog

BEFORE_S, AFTER_S = 2.0, 5.0


def retry_counts(log: EpisodeLog) -> dict[str, Any] | None:
    """Of one episode; None where the environment does not explain its stages.

    failed: attempts that failed, by kind; stayed: after how many of them the right subtask was named on; passed:
    how many were at a stage that was passed in the end. Agents that name no subtask count with all attempts, and
    stay at none.
    """
    if not log.stages:
        return None
    namings = n.namings(log)
    named = any(name and name != log.instruction for name in log.named)
    failed: Counter[str] = Counter()
    stayed = passed = 0
    for step, kind in log.failed_attempts:
        stage = log.due[step]
        before = namings[max(log.due_from(stage), step - round(BEFORE_S * log.hz)) : step + 1]
        if named and 2 * before.count(n.RIGHT) < len(before):
            continue  # it was an attempt at something else
        end = min(log.due_from(stage + 1), step + 1 + round(AFTER_S * log.hz))
        after = namings[step + 1 : end]
        failed[kind] += 1
        stayed += named and 2 * after.count(n.RIGHT) >= len(after)
        passed += log.due_from(stage + 1) < len(log) or log.states[stage : stage + 1] == "+"
    return {"failed": dict(failed), "stayed": stayed, "passed": passed}


def summarise_retries(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Over episodes that did not crash. episodes: with a failed attempt; saved: of those, how many succeeded, with
    Wilson's interval; attempts: those that failed, and of them stayed and passed; kinds: how many of each.

    Rates are None where nothing failed.
    """
    known = [(row["status"] == "success", row["retries"]) for row in rows if row.get("retries")]
    tried = [(success, retries) for success, retries in known if retries["failed"]]
    kinds = _sum(retries["failed"] for _, retries in tried)
    saved, attempts = sum(success for success, _ in tried), sum(kinds.values())
    low, high = wilson_interval(saved, len(tried))
    stayed, passed = (sum(retries[name] for _, retries in tried) for name in ("stayed", "passed"))
    return {
        "n": len(known),
        "episodes": len(tried),
        "saved": saved,
        "saved_share": saved / len(tried) if tried else None,
        "saved_ci_low": low,
        "saved_ci_high": high,
        "attempts": attempts,
        "stayed_share": stayed / attempts if attempts else None,
        "passed_share": passed / attempts if attempts else None,
        "kinds": kinds,
    }


def _sum(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for entry in counts:
        total.update(entry)
    return dict(total.most_common())

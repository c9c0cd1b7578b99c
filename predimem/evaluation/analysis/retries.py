"""Counts attempts that failed, and what became of them: is the subtask tried again, and is the episode saved?

An attempt failed if the gripper closed on nothing, dropped what it carried, or left a drawer or a door that it had
moved before its goal, while the agent named the subtask that was due (or picking up again what that needs); see
`predimem.envs.arena.attempts`. S2 stayed if it named that for most of the following seconds, or until the stage was
passed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from predimem.evaluation.analysis.metrics import wilson_interval
from predimem.evaluation.analysis.subtask_labels import RIGHT, judged_labels
from predimem.evaluation.report.episode_log import EpisodeLog

BEFORE_S, AFTER_S = 2.0, 5.0


def retry_counts(log: EpisodeLog) -> dict[str, Any] | None:
    """The counts of one episode; None if the environment does not explain its stages.

    failed: kind -> attempts that failed
    stayed: after how many of them the agent went on to name the right subtask
    passed: how many of them were at a stage that was passed in the end

    Of agents that give no subtask labels all attempts count, and they stay at none.
    """
    if not log.stages:
        return None
    judged = judged_labels(log)
    named = any(name and name != log.instruction for name in log.given_labels)
    failed: Counter[str] = Counter()
    stayed = passed = 0
    for step, kind in log.failed_attempts:
        stage = log.due[step]
        before = judged[max(log.due_from(stage), step - round(BEFORE_S * log.hz)) : step + 1]
        if named and 2 * before.count(RIGHT) < len(before):
            continue  # it was an attempt at something else
        end = min(log.due_from(stage + 1), step + 1 + round(AFTER_S * log.hz))
        after = judged[step + 1 : end]
        goes_on = log.due_from(stage + 1) < len(log) or log.states[stage : stage + 1] == "+"
        failed[kind] += 1
        stayed += named and (bool(after) or goes_on) and 2 * after.count(RIGHT) >= len(after)
        passed += goes_on
    return {"failed": dict(failed), "stayed": stayed, "passed": passed}


def summarise_retries(records: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The figures over all episodes that did not crash. Rates are None where no attempt failed.

    episodes: those with a failed attempt
    saved, saved_*: how many of those succeeded, with Wilson's interval
    attempts: how many attempts failed
    stayed_share, passed_share: the shares of them after which S2 stayed, and whose stage was passed
    kinds: kind -> how many attempts failed in that way
    """
    known = [(record["status"] == "success", record["retries"]) for record in records if record.get("retries")]
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

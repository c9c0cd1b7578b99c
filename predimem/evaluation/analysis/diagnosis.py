"""Works out the figures that are no success rates: causes of failures, memory errors, S2 by itself, and rates in Hz."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import fmean, median
from typing import Any

from predimem.evaluation.analysis.failures import CAUSES
from predimem.evaluation.analysis.planner_figures import pooled, rates
from predimem.evaluation.analysis.retries import summarise_retries
from predimem.evaluation.report.tables import aligned

EpisodeRecord = Mapping[str, Any]  # a record of the journal, see `run.jobs`


def diagnose(records: Sequence[EpisodeRecord], agents: Sequence[str]) -> dict[str, dict[str, Any]]:
    """For each agent its figures, over all of its episodes in `records` that did not crash."""
    return {
        agent: _diagnose([record for record in records if record["agent"] == agent and record["status"] != "error"])
        for agent in agents
    }


def _diagnose(records: Sequence[EpisodeRecord]) -> dict[str, Any]:
    """The figures of one agent.

    causes: cause -> how many episodes failed because of it
    stages: the same for each task and stage, the most frequent first
    memory_errors: how often each kind occurred, and in how many episodes
    planner: see `planner_figures.rates`
    retries: see `retries.summarise_retries`
    system: how often S1 and S2 answered in a second of the control clock (means over episodes), the age of the plan in
        control steps, and the shares of actions that were held or stale (means over episodes)
    """
    failures = [(record, record["failure"]) for record in records if record.get("failure")]
    causes = Counter(failure["cause"] for _, failure in failures)
    stages = Counter((record["task"], f["stage"], f["label"], f["cause"]) for record, f in failures)
    return {
        "n": len(records),
        "failed": sum(record["status"] == "failure" for record in records),
        "causes": {cause: causes[cause] for cause in CAUSES if causes[cause]},
        "stages": [
            {"task": task, "stage": stage, "label": label, "cause": cause, "n": n}
            for (task, stage, label, cause), n in stages.most_common()
        ],
        "memory_errors": _memory_errors(records),
        "planner": rates(pooled(record.get("planner") for record in records)),
        "retries": summarise_retries(records),
        "system": _system(records),
    }


def _memory_errors(records: Sequence[EpisodeRecord]) -> dict[str, Any]:
    known = [record["memory_errors"] for record in records if record.get("memory_errors")]
    total = pooled(known)
    return {"n": len(known)} | {
        name: {
            "episodes": sum(any(e[f"{short}_{how}"] for how in ("named", "done")) for e in known),
            "named": total.get(f"{short}_named", 0),
            "done": total.get(f"{short}_done", 0),
        }
        for name, short in (("state_aliasing", "aliasing"), ("constraint_forgetting", "forgetting"))
    }


def _system(records: Sequence[EpisodeRecord]) -> dict[str, float | None]:
    ages: Counter[int] = Counter()
    for record in records:
        ages.update(dict(record.get("plan_ages") or ()))
    return {
        "s1_hz": _mean([record.get("s1_hz") for record in records]),
        "s2_hz": _mean([record.get("s2_hz") for record in records]),
        "s1_ms_median": _median([ms for record in records for ms in record["s1_ms"]]),
        "s2_ms_median": _median([ms for record in records for ms in record["s2_ms"]]),
        "plan_age_median": quantile(ages, 0.5),
        "plan_age_p95": quantile(ages, 0.95),
        "held_action_ratio": _mean([record["held_action_ratio"] for record in records]),
        "stale_action_ratio": _mean([record["stale_action_ratio"] for record in records]),
    }


def quantile(counts: Mapping[int, int], q: float) -> int | None:
    """The smallest value that at least the share `q` of all do not exceed; None for none."""
    needed, seen = q * sum(counts.values()), 0
    for value in sorted(counts):
        seen += counts[value]
        if seen >= needed:
            return value
    return None


def format_diagnosis(diagnosis: Mapping[str, Mapping[str, Any]]) -> str:
    """The tables for a terminal; empty where nothing is known."""
    tables = (_causes(diagnosis), _retries(diagnosis), _planners(diagnosis), _systems(diagnosis))
    return "\n\n".join(table for table in tables if table)


def _causes(diagnosis: Mapping[str, Mapping[str, Any]]) -> str:
    causes = [cause for cause in CAUSES if any(cause in d["causes"] for d in diagnosis.values())]
    if not causes and not any(d["memory_errors"]["n"] for d in diagnosis.values()):
        return ""
    head = ["failed because of", "failed", *causes, "state aliasing", "constraint forgetting"]
    lines = [
        [
            agent,
            f"{d['failed']}/{d['n']}",
            *(str(d["causes"].get(cause, 0)) for cause in causes),
            *(f"{d['memory_errors'][x]['episodes']}" for x in ("state_aliasing", "constraint_forgetting")),
        ]
        for agent, d in diagnosis.items()
    ]
    return aligned([head, *lines], rule_after=1) + "\nepisodes; the last two columns also count episodes that succeeded"


def _retries(diagnosis: Mapping[str, Mapping[str, Any]]) -> str:
    lines = [
        [
            agent,
            str(r["attempts"]),
            *(percent(r[name]) for name in ("stayed_share", "passed_share")),
            str(r["episodes"]),
            f"{percent(r['saved_share'])} [{percent(r['saved_ci_low'], 0)}, {percent(r['saved_ci_high'], 0)}]",
        ]
        for agent, d in diagnosis.items()
        if (r := d["retries"])["attempts"]
    ]
    if not lines:
        return ""
    head = ["retries", "failed attempts", "S2 stayed", "stage passed", "episodes with one", "saved"]
    return aligned([head, *lines], rule_after=1) + (
        "\n%: of failed attempts (dropped, grasp of nothing, drawer or door left short of its goal); "
        "of the episodes that had one [95 % interval]"
    )


def _planners(diagnosis: Mapping[str, Mapping[str, Any]]) -> str:
    columns = ("accuracy_boundary", "accuracy_inside", "premature", "late", "missed")
    shares = (*columns, "keyframe_precision", "keyframe_recall")
    lines = [
        [
            agent,
            *(percent(p[name]) for name in columns),
            number(p["delay_median_s"], 2),
            *(percent(p[name]) for name in shares[len(columns) :]),
            str(p["answers"]),
        ]
        for agent, d in diagnosis.items()
        if (p := d["planner"])
    ]
    if not lines:
        return ""
    head = ["planner", "at switches", "inside", "premature", "late", "missed", "delay, s", "keyframes: precision"]
    return aligned([[*head, "recall", "answers"], *lines], rule_after=1) + (
        "\n%: right subtasks in answers within 1 s of a true switch and elsewhere; switches more than 1 s off"
    )


def _systems(diagnosis: Mapping[str, Mapping[str, Any]]) -> str:
    lines = [
        [
            agent,
            *(number(s[name], 2) for name in ("s1_hz", "s2_hz")),
            *(number(s[name], 0) for name in ("plan_age_median", "plan_age_p95")),
            *(percent(s[name]) for name in ("held_action_ratio", "stale_action_ratio")),
            *(number(s[name], 0) for name in ("s1_ms_median", "s2_ms_median")),
        ]
        for agent, d in diagnosis.items()
        if (s := d["system"])["s1_hz"] is not None or s["s2_hz"] is not None
    ]
    if not lines:
        return ""
    head = ["system", "S1 Hz", "S2 Hz", "plan age, steps", "p95", "held", "stale", "S1 ms", "S2 ms"]
    return aligned([head, *lines], rule_after=1) + "\nHz by the control clock; ms: medians of wall-clock time"


def percent(value: float | None, digits: int = 1) -> str:
    return "-" if value is None else f"{100 * value:.{digits}f}"


def number(value: float | None, digits: int) -> str:
    return "-" if value is None else f"{value:.{digits}f}"


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


def _median(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return median(known) if known else None

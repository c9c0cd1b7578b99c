"""Sums up episode records into the tables of results.json."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import fields
from statistics import fmean, median
from typing import Any

from predimem.core.types import EpisodeResult
from predimem.evaluation.analysis.metrics import (
    PAIRED_INTERVAL,
    csr,
    interval_method,
    mcnemar,
    mean_interval,
    mean_success_interval,
    paired_difference,
    stage_share,
    tsr,
    wilson_interval,
)
from predimem.evaluation.run.jobs import EpisodeRecord

Scored = dict[tuple[str, str], dict[int, EpisodeRecord]]  # (task, agent) -> seed -> record, without errors


def as_result(record: EpisodeRecord) -> EpisodeResult:
    return EpisodeResult(**{field.name: record[field.name] for field in fields(EpisodeResult)})


def summarise(records: Sequence[EpisodeRecord]) -> dict[str, Any]:
    """The figures of one agent at one task. What did not occur is None; errors are in no rate.

    `failures` says why episodes failed, where the environment tells it, and how many, the most frequent first.
    """
    results = [as_result(record) for record in records]
    scored = [record for record in records if record["status"] != "error"]
    failed = [record for record in records if record["status"] == "error"]
    successes = sum(record["status"] == "success" for record in scored)
    low, high = wilson_interval(successes, len(scored))
    csr_low, csr_high = mean_interval({"": [stage_share(as_result(record)) for record in scored]})
    reasons = Counter(_first_line(record) for record in scored if record["status"] == "failure" and record["message"])
    names = sorted({name for record in scored for name in record["metrics"]})
    metrics = {name: _mean([record["metrics"].get(name) for record in scored]) for name in names}
    return {
        "success": tsr(results),
        "n": len(scored),
        "successes": successes,
        "ci_low": low,
        "ci_high": high,
        "errors": len(failed),
        "error_messages": sorted({_first_line(record) for record in failed if record["message"]}),
        "failures": dict(reasons.most_common()),
        "csr": csr(results),
        "csr_ci_low": csr_low,
        "csr_ci_high": csr_high,
        "wrong_first_touch": metrics.get("wrong_first_touch"),
        "steps_mean": _mean([record["steps"] for record in scored]),
        "plan_age_mean": _mean([record["plan_age_steps"] for record in scored]),
        "stale_action_ratio": _mean([record["stale_action_ratio"] for record in scored]),
        "held_action_ratio": _mean([record["held_action_ratio"] for record in scored]),
        "s1_ms_median": _median([ms for record in scored for ms in record["s1_ms"]]),
        "s2_ms_median": _median([ms for record in scored for ms in record["s2_ms"]]),
        "answers": sum(record["answers"] for record in records),
        "invalid_answers": sum(record["invalid_answers"] for record in records),
        "refusals": sum(record["refusals"] for record in records),
        "homings": sum(record["homings"] for record in records),
        "keyframes_mean": _mean([record["keyframes"] for record in scored]),
        "episode_s_median": _median([record["wall_s"] for record in scored]),
        "metrics": metrics,
    }


def summarise_means(
    records: Sequence[EpisodeRecord], agents: Sequence[str], tasks: Sequence[str]
) -> dict[str, dict[str, Any]]:
    """For each agent the unweighted means over the tasks. Tasks in which all episodes were errors are left out.

    `interval` says how the intervals were made.
    """
    means = {}
    for agent in agents:
        own = [record for record in records if record["agent"] == agent and record["task"] in tasks]
        scored = {task: [r for r in own if r["task"] == task and r["status"] != "error"] for task in tasks}
        results = {task: [as_result(record) for record in played] for task, played in scored.items() if played}
        successes = {task: [r.status == "success" for r in played] for task, played in results.items()}
        counts = [len(played) for played in results.values()]
        low, high = mean_success_interval(successes)
        csr_low, csr_high = mean_interval({task: [stage_share(r) for r in played] for task, played in results.items()})
        means[agent] = {
            "success": _mean([tsr(played) for played in results.values()]),
            "ci_low": low,
            "ci_high": high,
            "csr": _mean([csr(played) for played in results.values()]),
            "csr_ci_low": csr_low,
            "csr_ci_high": csr_high,
            "interval": interval_method(counts),
            "tasks": len(results),
            "n": sum(counts),
            "errors": len(own) - sum(counts),
            "invalid_answers": sum(record["invalid_answers"] for record in own),
        }
    return means


def means_note(results: Mapping[str, Any]) -> str:
    """Says, for below a table, how the intervals of the means in results.json were made."""
    means = [results["mean"], *(entry["agents"] for entry in results.get("categories", {}).values())]
    figures = [cells for mean in means for cells in mean.values() if cells["tasks"] > 1] or [*results["mean"].values()]
    methods = dict.fromkeys(cells["interval"] for cells in figures)
    return f"mean over tasks, 95 % interval: {'; or '.join(methods)}"


def compare(
    records: Sequence[EpisodeRecord],
    tasks: Sequence[str],
    agents: Sequence[str],
    references: Mapping[str, str] | None = None,
    categories: Mapping[str, Sequence[str]] | None = None,
) -> dict[str, Any]:
    """Compare each agent with its reference, on the seeds that both finished without an error.

    For each task, each category and all tasks there is McNemar's test of TSR over the pairs, and the difference in CSR
    (reference minus other, mean over the tasks, see `paired_difference`).

    references: agent -> the agent that it is compared with. An agent without one that was played is compared with the
        first agent.
    """
    scored: Scored = {}
    for record in records:
        if record["status"] != "error":
            scored.setdefault((record["task"], record["agent"]), {})[record["seed"]] = record
    groups = {task: [task] for task in tasks}
    groups |= {name: [t for t in tasks if t in members] for name, members in (categories or {}).items()}
    groups = {name: members for name, members in groups.items() if members} | {"all tasks": list(tasks)}
    results: dict[str, Any] = {name: {} for name in groups}
    for other in agents[1:]:
        reference = (references or {}).get(other, agents[0])
        reference = reference if reference in agents and reference != other else agents[0]
        for name, members in groups.items():
            results[name][other] = {"reference": reference} | _paired(scored, members, reference, other)
    return {
        "test": "exact McNemar, two-sided",
        "csr_test": f"Difference in CSR: mean over tasks, 95 % interval: {PAIRED_INTERVAL}",
        "reference": agents[0],
        "results": results,
    }


def _paired(scored: Scored, tasks: Sequence[str], reference: str, other: str) -> dict[str, Any]:
    pairs = {}
    for task in tasks:
        others = scored.get((task, other), {})
        pairs[task] = [(r, others[seed]) for seed, r in scored.get((task, reference), {}).items() if seed in others]
    success = [(x["status"] == "success", y["status"] == "success") for p in pairs.values() for x, y in p]
    test = mcnemar([x for x, _ in success], [y for _, y in success])
    ours = {task: [stage_share(as_result(x)) for x, _ in p] for task, p in pairs.items()}
    theirs = {task: [stage_share(as_result(y)) for _, y in p] for task, p in pairs.items()}
    csr_difference = paired_difference(ours, theirs)
    return {
        "n": test.n,
        "only_reference": test.only_first,
        "only_other": test.only_second,
        "p_value": test.p_value,
        "csr_difference": csr_difference.mean if test.n else None,
        "csr_difference_ci_low": csr_difference.low,
        "csr_difference_ci_high": csr_difference.high,
    }


def _first_line(record: EpisodeRecord) -> str:
    return record["message"].splitlines()[0]


def _mean(values: Sequence[float | None]) -> float | None:
    known = [v for v in values if v is not None]
    return fmean(known) if known else None


def _median(values: Sequence[float | None]) -> float | None:
    known = [v for v in values if v is not None]
    return median(known) if known else None

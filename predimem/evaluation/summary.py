"""From episodes' rows to the tables of results.json."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import fields
from statistics import fmean, median
from typing import Any

from predimem.evaluation.jobs import Row
from predimem.evaluation.metrics import (
    bootstrap_mean,
    csr,
    mcnemar,
    mean_of_proportions,
    stage_share,
    tsr,
    wilson_interval,
)
from predimem.types import EpisodeResult

Table = dict[str, dict[str, dict[str, Any]]]


def as_result(row: Row) -> EpisodeResult:
    return EpisodeResult(**{field.name: row[field.name] for field in fields(EpisodeResult)})


def summarise(rows: Sequence[Row]) -> dict[str, Any]:
    """The figures of one agent at one task. What did not occur is None; errors are in no rate.

    failures: why episodes failed, where the environment says so, and how many, most frequent first.
    """
    results = [as_result(row) for row in rows]
    scored = [row for row in rows if row["status"] != "error"]
    failed = [row for row in rows if row["status"] == "error"]
    successes = sum(row["status"] == "success" for row in scored)
    low, high = wilson_interval(successes, len(scored))
    csr_low, csr_high = bootstrap_mean({"": [stage_share(as_result(row)) for row in scored]})
    reasons = Counter(_first_line(row) for row in scored if row["status"] == "failure" and row["message"])
    names = sorted({name for row in scored for name in row["metrics"]})
    metrics = {name: _mean([row["metrics"].get(name) for row in scored]) for name in names}
    return {
        "success": tsr(results),
        "n": len(scored),
        "successes": successes,
        "ci_low": low,
        "ci_high": high,
        "errors": len(failed),
        "error_messages": sorted({_first_line(row) for row in failed if row["message"]}),
        "failures": dict(reasons.most_common()),
        "csr": csr(results),
        "csr_ci_low": csr_low,
        "csr_ci_high": csr_high,
        "wrong_first_touch": metrics.get("wrong_first_touch"),
        "steps_mean": _mean([row["steps"] for row in scored]),
        "plan_age_mean": _mean([row["plan_age_steps"] for row in scored]),
        "stale_action_ratio": _mean([row["stale_action_ratio"] for row in scored]),
        "held_action_ratio": _mean([row["held_action_ratio"] for row in scored]),
        "s1_ms_median": _median([ms for row in scored for ms in row["s1_ms"]]),
        "s2_ms_median": _median([ms for row in scored for ms in row["s2_ms"]]),
        "answers": sum(row["answers"] for row in rows),
        "invalid_answers": sum(row["invalid_answers"] for row in rows),
        "keyframes_mean": _mean([row["keyframes"] for row in scored]),
        "episode_s_median": _median([row["wall_s"] for row in scored]),
        "metrics": metrics,
    }


def summarise_means(rows: Sequence[Row], agents: Sequence[str], table: Table) -> dict[str, dict[str, Any]]:
    """Unweighted means over the tasks, for each agent. Tasks with no scored episode are left out."""
    means = {}
    for agent in agents:
        cells = {task: cells[agent] for task, cells in table.items() if cells[agent]["n"]}
        counts = [(cell["successes"], cell["n"]) for cell in cells.values()]
        low, high = mean_of_proportions(counts)
        shares = {
            task: [stage_share(as_result(r)) for r in rows if _is(r, task, agent) and r["status"] != "error"]
            for task in cells
        }
        csr_low, csr_high = bootstrap_mean(shares)
        means[agent] = {
            "success": _mean([cell["success"] for cell in cells.values()]),
            "ci_low": low,
            "ci_high": high,
            "csr": _mean([cell["csr"] for cell in cells.values()]),
            "csr_ci_low": csr_low,
            "csr_ci_high": csr_high,
            "tasks": len(cells),
            "n": sum(n for _, n in counts),
            "errors": sum(table[task][agent]["errors"] for task in table),
            "invalid_answers": sum(table[task][agent]["invalid_answers"] for task in table),
        }
    return means


def compare(rows: Sequence[Row], tasks: Sequence[str], agents: Sequence[str]) -> dict[str, Any]:
    """The first agent against each other one, on the seeds that both finished without an error."""
    reference, *others = agents
    outcome = {
        (r["task"], r["agent"], r["seed"]): r["status"] == "success" for r in rows if r["status"] != "error"
    }
    by_task: dict[str, Any] = {}
    for name, group in [*((task, [task]) for task in tasks), ("all tasks", list(tasks))]:
        by_task[name] = {}
        for other in others:
            ours = [(t, s) for t, a, s in outcome if a == reference and t in group]
            keys = [(t, s) for t, s in ours if (t, other, s) in outcome]
            first = [outcome[t, reference, s] for t, s in keys]
            second = [outcome[t, other, s] for t, s in keys]
            paired = mcnemar(first, second)
            by_task[name][other] = {
                "n": paired.n,
                "only_reference": paired.only_first,
                "only_other": paired.only_second,
                "p_value": paired.p_value,
            }
    return {"test": "exact McNemar, two-sided", "reference": reference, "results": by_task}


def _is(row: Row, task: str, agent: str) -> bool:
    return row["task"] == task and row["agent"] == agent


def _first_line(row: Row) -> str:
    return row["message"].splitlines()[0]


def _mean(values: Sequence[float | None]) -> float | None:
    known = [v for v in values if v is not None]
    return fmean(known) if known else None


def _median(values: Sequence[float | None]) -> float | None:
    known = [v for v in values if v is not None]
    return median(known) if known else None

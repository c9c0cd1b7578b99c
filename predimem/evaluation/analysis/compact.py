"""Writes and reads results that are small enough for a repository, with all that is needed to repeat and check them.

A compact file is results.json without what can be worked out again or is of no later use (traces, reviews, wall-clock
times). Its episodes are a table: one line for each task and agent, with the columns that `verify` compares, the first
mistake (`mistakes.Mistake`), and the seeds in their order. Older files have no mistakes. `--verify` reads both files.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from itertools import groupby
from pathlib import Path
from typing import Any

COLUMNS = (
    *("seed", "status", "steps", "stages_passed", "stages_total", "message"),
    *("answers", "invalid_answers", "refusals", "homings", "trajectory", "mistake"),
)
KEPT = (
    *("schema", "benchmark", "benchmark_version", "revision", "dirty", "revisions", "machine", "config", "provenance"),
    *("started", "wall_s", "mean", "categories", "diagnosis"),
)
MESSAGE_LETTERS = 200  # of an error's first line


def compact_json(results: Mapping[str, Any]) -> str:
    """A text of one line for each top-level entry and for the episodes of each task and agent."""
    entries = {name: results[name] for name in KEPT if name in results}
    if "out" in entries.get("config", {}):
        entries["config"] = {**entries["config"], "out": _portable(entries["config"]["out"])}
    entries["comparisons"] = overall(results.get("comparisons"), results["results"])
    entries["columns"] = COLUMNS
    lines = [f"{json.dumps(name)}: {as_line(value)}" for name, value in entries.items()]
    groups = [
        as_line(
            {"task": task, "agent": agent, "rows": [[_cell(record, name) for name in COLUMNS] for record in records]}
        )
        for (task, agent), records in groupby(results["episodes"], key=lambda record: (record["task"], record["agent"]))
    ]
    lines.append('"groups": [\n' + ",\n".join(groups) + "\n]")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def episodes_of(results: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The records of the episodes in results.json or a compact file, as far as it keeps them. Raises KeyError."""
    if "episodes" in results:
        return list(results["episodes"])
    return [
        {"task": group["task"], "agent": group["agent"]} | dict(zip(results["columns"], row, strict=True))
        for group in results["groups"]
        for row in group["rows"]
    ]


def overall(comparisons: Mapping[str, Any] | None, tasks: Collection[str]) -> dict[str, Any] | None:
    """The comparisons, without those of single tasks."""
    if not comparisons:
        return None
    return {**comparisons, "results": {name: g for name, g in comparisons["results"].items() if name not in tasks}}


def _portable(out: str) -> str:
    """Such a file is shared: of a whole path it keeps the last folder, and not where that is on this machine."""
    return Path(out).name if Path(out).is_absolute() else out


def _cell(record: Mapping[str, Any], name: str) -> Any:
    if name == "message" and record["status"] == "error":
        return (record["message"] or "").splitlines()[0][:MESSAGE_LETTERS] if record["message"] else ""
    return record.get(name)


def as_line(value: Any) -> str:
    """A value as it is written behind its name, on one line."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))

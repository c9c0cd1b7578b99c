"""Chooses the episodes that the report draws, and says of each what the page shows."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from predimem.evaluation.analysis.mistakes import in_words
from predimem.evaluation.report.timeline import keyframes_of, timeline


def load_traces(results: Mapping[str, Any], out: str | Path) -> list[dict[str, Any]]:
    """For each task the trace of one episode of the first agent and, where another agent failed with the same seed,
    the first of those. Chosen is a seed that was filmed, at which the first agent succeeded and another one failed, as
    far as there is one."""
    out, traces = Path(out), []
    agent = results["config"]["agents"][0]
    for task in results["results"]:
        records = [r for r in results["episodes"] if r["task"] == task and r["trace"] and (out / r["trace"]).is_file()]
        own = [r for r in records if r["agent"] == agent]
        # A stable sort: among equals the first seed.
        own.sort(key=lambda r: (r["video"] is None, r["status"] != "success", not any(_contrasts(r, records))))
        for chosen in own:
            trace = read_trace(out / chosen["trace"])
            if trace["ticks"]:
                others = (read_trace(out / other["trace"]) for other in _contrasts(chosen, records))
                traces += [trace, *[other for other in others if other["ticks"]][:1]]
                break
    return traces


def as_shown(trace: Mapping[str, Any]) -> dict[str, Any]:
    """What the page shows of an episode, beside what the trace says itself.

    keyframes: number, step, subtask at that step, and images (camera -> data URI; empty where it was not filmed)
    """
    ticks, mistake = trace["ticks"], trace.get("mistake")
    subtasks = {tick["step"]: tick["subtask"] for tick in ticks}
    images = trace.get("thumbnails", {})
    return {
        "trace": trace,
        "outcome": _outcome(trace),
        "status": (trace.get("result") or {}).get("status", "unfinished"),
        "planned": any(tick["plan_arrived"] for tick in ticks),
        "drawing": timeline(trace),
        "mistake": f"step {mistake['step']}: {in_words(mistake)}" if mistake else "",
        "keyframes": [
            {"number": number, "step": step, "subtask": subtasks.get(step, ""), "images": images.get(str(step), {})}
            for number, (step, _) in enumerate(keyframes_of(trace), 1)
        ],
    }


def _contrasts(own: Mapping[str, Any], records: Sequence[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """The episodes of other agents that failed with the same seed."""
    return (
        record
        for record in records
        if (record["seed"], record["status"]) == (own["seed"], "failure") and record["agent"] != own["agent"]
    )


def read_trace(path: Path) -> dict[str, Any]:
    """An episode that crashed before its first step has no ticks; earlier versions left the word out."""
    return {"ticks": [], "instruction": ""} | json.loads(path.read_text())


def _outcome(trace: Mapping[str, Any]) -> str:
    result = trace.get("result") or {}
    reason = (result.get("message") or "").partition("\n")[0]
    return f"{result.get('status', 'unfinished')} after {len(trace['ticks'])} steps{f' ({reason})' if reason else ''}"

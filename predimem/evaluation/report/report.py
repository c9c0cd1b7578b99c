"""`report.html`: one self-contained page that a newcomer reads in two minutes.

Styles, drawings and thumbnails are inside the file; only the videos stay beside it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from predimem.core.files import write_text
from predimem.envs.benchmark import load_benchmark
from predimem.evaluation.analysis.failures import CAUSES
from predimem.evaluation.report.browser import browse
from predimem.evaluation.report.charts import success_bars
from predimem.evaluation.report.episodes import as_shown
from predimem.evaluation.report.page import template
from predimem.evaluation.report.summary import means_note
from predimem.evaluation.report.terms import TERMS

AGENT_NOTES = {
    "oracle": "the scripted expert, which knows the true state: it shows what the task allows",
    "script": "the scripted skills, always in the order of the episode of seed 0: it shows what works without looking",
    "random": "random actions: they show what luck gives",
}


def write_report(
    results: Mapping[str, Any], traces: Sequence[Mapping[str, Any]], out: str | Path, studies: Sequence[str] = ()
) -> Path:
    """Write `out`/report.html and return its path.

    traces: the episodes to draw (see `episodes.load_traces`), as `recording` writes them, with an optional
        `thumbnails` (step -> camera -> data URI of an image) and `mistake` (see `mistakes.Mistake`)
    studies: SVG files in `out`, which the page refers to
    """
    agents, published = results["config"]["agents"], results["published"]
    episodes = [as_shown(trace) for trace in traces]
    drawn = {(trace["task"], trace["agent"], trace["seed"]) for trace in traces}
    filmed = [record for record in results["episodes"] if record["video"]]
    featured = [r for r in filmed if r["agent"] == agents[0] or (r["task"], r["agent"], r["seed"]) in drawn]
    page = template("report.html").render(
        results=results,
        agents=agents,
        own=agents[0],
        verdict=_verdict(results),
        published=published,
        means_note=means_note(results),
        agent_notes={agent: AGENT_NOTES.get(agent, "") for agent in agents} | results["config"].get("notes", {}),
        bars=success_bars(results),
        studies=studies,
        planned=any(episode["planned"] for episode in episodes),
        shown=episodes,
        videos=[record for record in filmed if record in featured],
        more_videos=[record for record in filmed if record not in featured],
        troubles=_troubles(results),
        failures=browse(results, out),
        **_diagnosis(results),
        weights=_weights(results["provenance"]),
        long_episodes=load_benchmark(results["config"]["benchmark"]).long_episodes,
        provenance=json.dumps(results["provenance"], indent=2, ensure_ascii=False),
        config=json.dumps(results["config"], indent=2, ensure_ascii=False),
        terms=TERMS,
    )
    path = Path(out) / "report.html"
    write_text(path, page)
    return path


def _verdict(results: Mapping[str, Any]) -> str:
    agent = results["config"]["agents"][0]
    mean, tasks = results["mean"][agent], len(results["results"])
    if mean["success"] is None:
        return f"{agent} finished no episode without an error: there is no success rate to report."
    text = (
        f"{agent} succeeds in {mean['success']:.0%} of {mean['n']} episode{'s' * (mean['n'] != 1)}"
        f"{f' (mean over {tasks} tasks)' if tasks > 1 else ''}, "
        f"95 % interval {mean['ci_low']:.0%} to {mean['ci_high']:.0%}."
    )
    others = [
        f"{other} {figures['success']:.0%}"
        for other, figures in results["mean"].items()
        if other != agent and figures["success"] is not None
    ]
    return text + (f" On the same seeds: {', '.join(others)}." if others else "")


def _troubles(results: Mapping[str, Any]) -> list[dict[str, Any]]:
    """For each task and agent with any: failed seeds, errors with their messages, and counts of what is rarer."""
    troubles = []
    for task, cells in results["results"].items():
        for agent, cell in cells.items():
            records = [r for r in results["episodes"] if r["task"] == task and r["agent"] == agent]
            failed = [r["seed"] for r in records if r["status"] == "failure"]
            errors = [(r["seed"], _first_line(r["message"])) for r in records if r["status"] == "error"]
            if failed or errors or any(cell[name] for name in ("invalid_answers", "refusals", "homings")):
                troubles.append(
                    {"task": task, "agent": agent, "failed": failed, "errors": errors}
                    | {"invalid": cell["invalid_answers"], "answers": cell["answers"], "reasons": cell["failures"]}
                    | {"refusals": cell["refusals"], "homings": cell["homings"]}
                )
    return troubles


def _diagnosis(results: Mapping[str, Any]) -> dict[str, Any]:
    """For the template: the figures of `diagnosis.diagnose`, and which of its tables there is something in."""
    diagnosis = results["diagnosis"]
    figures = list(diagnosis.values())
    return {
        "diagnosis": diagnosis,
        "causes": [cause for cause in CAUSES if any(cause in d["causes"] for d in figures)],
        "diagnosed": any(d["memory_errors"]["n"] for d in figures),
        "rated": any(d["system"]["s1_hz"] is not None or d["system"]["s2_hz"] is not None for d in figures),
    }


def _weights(provenance: Mapping[str, Any]) -> dict[str, str]:
    """Model -> hash, of all models that were played."""
    agents = provenance.get("agent_configs", {}).values()
    return {model: digest for agent in agents for model, digest in agent.get("weights", {}).items()}


def _first_line(message: str) -> str:
    return (message or "no message").splitlines()[0]

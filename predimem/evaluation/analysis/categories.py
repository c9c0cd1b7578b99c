"""Makes the table of a benchmark whose tasks have categories, as in RoboMemArena (arXiv:2605.10921), Table 2."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from predimem.evaluation.report.summary import means_note, summarise_means
from predimem.evaluation.report.tables import aligned
from predimem.evaluation.run.jobs import EpisodeRecord

NOTE = "% [95 % interval]; TSR of one task by Wilson; errors are in no rate"

Categories = Mapping[str, Sequence[str]]  # category -> its tasks, in the order of the columns


def summarise_categories(
    records: Sequence[EpisodeRecord], agents: Sequence[str], tasks: Sequence[str], categories: Categories
) -> dict[str, dict[str, Any]]:
    """For each category, which of `tasks` are in it, and for each agent the unweighted means over them.

    Categories without any of these tasks are left out.
    """
    own = {category: [task for task in tasks if task in members] for category, members in categories.items()}
    return {
        category: {"tasks": members, "agents": summarise_means(records, agents, members)}
        for category, members in own.items()
        if members
    }


def format_categories(results: Mapping[str, Any]) -> str:
    """Both tables for a terminal, in %: agents against categories, then the tasks one by one."""
    agents, categories = results["config"]["agents"], results["categories"]
    columns = [*((name, entry["agents"]) for name, entry in categories.items()), ("average", results["mean"])]
    head = [["", *(cell for name, _ in columns for cell in (name, ""))], ["agent", *["TSR", "CSR"] * len(columns)]]
    lines = [[agent, *(cell for _, cells in columns for cell in _pair(cells[agent]))] for agent in agents]
    blocks = [aligned([*head, *lines], rule_after=2)]

    head = [["", "", *(cell for agent in agents for cell in (agent, "", ""))]]
    head.append(["task", "category", *["TSR", "CSR", "n"] * len(agents)])
    lines = [
        [task, name, *(cell for agent in agents for cell in (*_pair(cells[agent]), _count(cells[agent])))]
        for task, cells in results["results"].items()
        for name, entry in categories.items()
        if task in entry["tasks"]
    ]
    blocks.append(aligned([*head, *lines], rule_after=2))
    notes = [NOTE, means_note(results)]
    errors = sum(mean["errors"] for mean in results["mean"].values())
    if errors:
        notes.append(f"{errors} episodes ended in an error (+e behind n): see the report")
    return "\n\n".join([*blocks, "\n".join(notes)])


def markdown_table(results: Mapping[str, Any]) -> str:
    """The table for a Markdown file: agents against categories and their average, in %."""
    categories = results["categories"]
    columns = [*((name, entry["agents"]) for name, entry in categories.items()), ("average", results["mean"])]
    head = ["agent", *(f"{name} {rate}" for name, _ in columns for rate in ("TSR", "CSR")), "n", "errors"]
    lines = [head, ["---", *["---:"] * (len(head) - 1)]]
    for agent in results["config"]["agents"]:
        mean = results["mean"][agent]
        cells = [cell for _, figures in columns for cell in _pair(figures[agent])]
        lines.append([agent, *cells, str(mean["n"]), str(mean["errors"])])
    seeds = results["config"]["seed_start"], results["config"]["seed_start"] + results["config"]["episodes"] - 1
    tasks = ", ".join(f"{name} {len(entry['tasks'])}" for name, entry in categories.items())
    source = f"{results['benchmark_version']}, revision {results['revision']}{' (changed)' if results['dirty'] else ''}"
    notes = f"Seeds {seeds[0]} to {seeds[1]} of each task ({tasks}); {source}. {NOTE}; {means_note(results)}."
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + f"\n\n{notes}\n"


def _pair(figures: Mapping[str, Any]) -> tuple[str, str]:
    """TSR and CSR of a cell, each with its interval."""
    if figures["success"] is None:
        return "-", "-"
    tsr = _rate(figures["success"], figures["ci_low"], figures["ci_high"])
    return tsr, _rate(figures["csr"], figures["csr_ci_low"], figures["csr_ci_high"])


def _rate(value: float, low: float, high: float) -> str:
    return f"{100 * value:.1f} [{100 * low:.0f}, {100 * high:.0f}]"


def _count(figures: Mapping[str, Any]) -> str:
    errors = f" +{figures['errors']}e" if figures["errors"] else ""
    return f"{figures['n']}{errors}"

"""The page of `predimem demo`: two agents on the same seeds, side by side, with what each of them remembers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from predimem.core.files import write_text
from predimem.evaluation.report.episodes import as_shown, read_trace
from predimem.evaluation.report.page import template
from predimem.evaluation.report.pair import Half, side_by_side
from predimem.evaluation.report.terms import TERMS

CAPTIONS = ("with keyframes", "without keyframes")


class Rate(NamedTuple):
    """Successes of an agent in episodes that were played before, in %, with the 95 % interval."""

    agent: str
    who: str
    where: str
    n: int
    success: str


# The tables of the README and of results/, so that nobody takes one seed for the whole; tests hold them together.
RATES = (
    Rate("predimem-skills", "S2 with keyframes, scripted skills", "this task", 20, "95 [76, 99]"),
    Rate("no-keyframes-skills", "S2 without keyframes, scripted skills", "this task", 20, "0 [0, 16]"),
    Rate("predimem", "S2 with keyframes, learned S1", "this task", 20, "60 [39, 78]"),
    Rate("predimem-skills", "S2 with keyframes, scripted skills", "all 26 tasks", 520, "95 [93, 97]"),
    Rate("no-keyframes-skills", "S2 without keyframes, scripted skills", "all 26 tasks", 520, "56 [53, 59]"),
    Rate("predimem", "S2 with keyframes, learned S1", "all 26 tasks", 520, "69 [66, 72]"),
)
COLOUR_RATES = (
    Rate("predimem", "S2 with keyframes, learned S1", "RememberColor 3, 5, 9", 102, "100 [96, 100]"),
    Rate("no-keyframes", "S2 without keyframes, learned S1", "RememberColor 3, 5, 9", 102, "11 [5, 18]"),
)


def write_demo(drawers: Mapping[str, Any], colours: Mapping[str, Any], out: Path) -> Path:
    """Write the videos side by side and `out`/report.html, and return the page's path.

    drawers, colours: the results of the two evaluations; each lies in a folder in `out`
    """
    page = template("demo.html").render(
        drawers=_pairs(drawers, out),
        colours=_pairs(colours, out),
        drawers_report=_inside(drawers, out) / "report.html",
        colours_report=_inside(colours, out) / "report.html",
        drawers_agents=drawers["config"]["agents"],
        seed=drawers["config"]["seed_start"],
        rates_of_drawers=RATES,
        rates_of_colours=COLOUR_RATES,
        scores=[(results["config"]["tasks"], _scores(results)) for results in (drawers, colours)],
        terms=TERMS,
    )
    path = out / "report.html"
    write_text(path, page)
    return path


def _pairs(results: Mapping[str, Any], out: Path) -> list[dict[str, Any]]:
    """For each task its first seed: the two episodes as they are shown, and their video, empty if one is missing."""
    seed, found = results["config"]["seed_start"], []
    folder = out / _inside(results, out)
    for task in results["config"]["tasks"]:
        records = [
            next(r for r in results["episodes"] if (r["task"], r["agent"], r["seed"]) == (task, agent, seed))
            for agent in results["config"]["agents"]
        ]
        shown = [as_shown(read_trace(folder / record["trace"])) if record["trace"] else None for record in records]
        found.append({"task": task, "records": records, "shown": shown, "video": _video(task, records, folder, out)})
    return found


def _video(task: str, records: Sequence[Mapping[str, Any]], folder: Path, out: Path) -> str:
    """The two videos of one seed as one, relative to `out`."""
    parts = [folder / record["video"] for record in records if record["video"]]
    if len(parts) < len(records) or not all(part.is_file() for part in parts):
        return ""
    path = folder / "videos" / f"{task}-seed{records[0]['seed']}.mp4"
    if not path.is_file() or path.stat().st_mtime < max(part.stat().st_mtime for part in parts):
        left, right = (
            Half(part, f"{caption} ({record['agent']})")
            for part, caption, record in zip(parts, CAPTIONS, records, strict=True)
        )
        side_by_side(left, right, path)
    return str(path.relative_to(out))


def _inside(results: Mapping[str, Any], out: Path) -> Path:
    return Path(results["config"]["out"]).relative_to(out)


def _scores(results: Mapping[str, Any]) -> list[str]:
    """Of each agent "4 of 5", over all tasks of its part."""
    means = []
    for agent in results["config"]["agents"]:
        cells = [cells[agent] for cells in results["results"].values()]
        means.append(f"{sum(c['successes'] for c in cells)} of {sum(c['n'] for c in cells)}")
    return means

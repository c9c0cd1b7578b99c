"""The figures of `statistics` as Markdown, beside those of the RoboMemArena paper."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

Figures = Mapping[str, Any]

HEAD = (
    "task", "attempted", "kept", "yield [95 %]", "steps, mean ± sd", "min to max", "s", "subtasks", "memory-dependent",
    "keyframes", "per subtask", "retries", "MB",
)  # fmt: skip
PAPER = {  # RoboMemArena (arXiv:2605.10921), §3.3
    "tasks": "26",
    "demonstrations": "2,600",
    "steps of a demonstration, mean": "1,076",
    "segments (subtasks)": "15,100",
    "segments of a demonstration": "5.8",
    "memory-dependent subtasks": "68.9 %",
}
NOTES = """Means are over the episodes that were kept. Keyframes and retries are per episode; a retry is another attempt
at a subtask whose post-condition did not hold. The paper does not publish its yield, retries or keyframes."""


def page(statistics: Figures) -> str:
    """The whole page: all episodes beside the paper's, each task, why attempts were discarded, what took the time."""
    tasks, whole = statistics["tasks"], statistics["all"]
    rows = [[name, *_cells(figures)] for name, figures in tasks.items()]
    rows.append(["**all**", *_cells(whole)])
    kept = sum(figures["episodes"] > 0 for figures in tasks.values())
    parts = [
        _table(["", "these episodes", "the paper's"], _compared(whole, kept), "lrr"),
        _table(HEAD, rows, "l" + "r" * (len(HEAD) - 1)),
        NOTES,
    ]
    if whole["causes"]:
        parts.append(_table(["why attempts were discarded", "attempts"], whole["causes"].items(), "lr"))
    if whole["stage_seconds"]:
        total = _as("{:.1f}", whole["work_seconds"])
        stages = [[stage, f"{seconds:.1f}"] for stage, seconds in whole["stage_seconds"].items()]
        parts.append(_table(["stage", "s of an attempt, mean"], [*stages, ["**whole attempt**", total]], "lr"))
    missing = (whole["kept"] or 0) - whole["episodes"]
    if whole["attempted"] and missing:
        other = f"{missing} of them are not in the folder" if missing > 0 else f"{-missing} more are in the folder"
        parts.append(f"The journal has {whole['kept']} kept episodes; {other}.")
    return "\n\n".join(parts) + "\n"


def _compared(whole: Figures, tasks: int) -> list[list[str]]:
    steps = whole["steps"] or {}
    ours = {
        "tasks": str(tasks),
        "demonstrations": f"{whole['episodes']:,}",
        "steps of a demonstration, mean": _as("{:,.0f}", steps.get("mean")),
        "segments (subtasks)": f"{whole['subtasks']:,}",
        "segments of a demonstration": _as("{:.1f}", whole["subtasks_per_episode"]),
        "memory-dependent subtasks": _percent(whole["memory_share"]),
        "yield": _yield(whole),
        "keyframes of a demonstration": _as("{:.1f}", whole["keyframes_per_episode"]),
        "keyframes of a segment": _as("{:.1f}", whole["keyframes_per_subtask"]),
        "retries of a demonstration": _as("{:.2f}", whole["retries_per_episode"]),
        "demonstrations with a retry": _percent(whole["retried_share"]),
        "images": f"{whole['images']:,}",
        "size on disk": f"{whole['bytes'] / 1e9:.2f} GB",
    }
    return [[name, text, PAPER.get(name, "-")] for name, text in ours.items()]


def _cells(figures: Figures) -> list[str]:
    steps = figures["steps"]
    return [
        _as("{}", figures["attempted"]),
        str(figures["episodes"]),
        _yield(figures),
        f"{steps['mean']:,.0f} ± {steps['sd']:.0f}" if steps else "-",
        f"{steps['min']:,} to {steps['max']:,}" if steps else "-",
        _as("{:.1f}", figures["seconds"]),
        _as("{:.1f}", figures["subtasks_per_episode"]),
        _percent(figures["memory_share"]),
        _as("{:.1f}", figures["keyframes_per_episode"]),
        _as("{:.1f}", figures["keyframes_per_subtask"]),
        _as("{:.2f}", figures["retries_per_episode"]),
        f"{figures['bytes'] / 1e6:.1f}",
    ]


def _yield(figures: Figures) -> str:
    if figures["yield"] is None:
        return "-"
    return f"{figures['yield']:.2f} [{figures['yield_low']:.2f}, {figures['yield_high']:.2f}]"


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.1f} %"


def _as(form: str, value: Any) -> str:
    return "-" if value is None else form.format(value)


def _table(head: Sequence[str], rows: Iterable[Sequence[object]], align: str) -> str:
    rule = ["---:" if side == "r" else "---" for side in align]
    lines = ([str(cell).replace("|", "\\|") for cell in row] for row in (head, rule, *rows))
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)

"""Writes the table and the chart of success with unseen things (`predimem.evaluation.analysis.unseen`)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from predimem.envs.arena.unseen.conditions import CONDITIONS
from predimem.evaluation.analysis.metrics import PAIRED_INTERVAL
from predimem.evaluation.analysis.unseen import Outcomes, Row, rows_of
from predimem.evaluation.report.condition_charts import draw_alone, write_csv

HEAD = (
    *("condition", "agent", "successes", "n", "rate", "ci_low", "ci_high"),
    *("pairs", "only_condition", "only_plain", "difference", "difference_ci_low", "difference_ci_high", "p_value"),
)
TABLE_HEAD = ("agent", "condition", "successes", "n", "success, %", "minus plain, points", "pairs", "p")
NOTE = (
    f"Success with Wilson's 95 % interval; the difference is of pairs on the same tasks and seeds, mean over tasks, "
    f"95 % interval: {PAIRED_INTERVAL}; p by McNemar's exact test, not corrected for the number of rows."
)


def write_unseen(outcomes: Outcomes, out: Path) -> list[Path]:
    """Write unseen.csv, unseen.md and the chart unseen (SVG and PNG). Raises ValueError without any episode."""
    rows = rows_of(outcomes)
    out.mkdir(parents=True, exist_ok=True)
    lines = table_of(rows)
    table = ["| " + " | ".join(line) + " |" for line in (lines[0], ("---",) * 2 + ("---:",) * 6, *lines[1:])]
    (out / "unseen.md").write_text("\n".join([*table, "", note_of(outcomes), ""]), encoding="utf-8")
    counts = {(row.agent, row.condition): row.count for row in rows}
    agents = list(dict.fromkeys(row.agent for row in rows))
    conditions = [name for name in CONDITIONS if any(row.condition == name for row in rows)]
    return [
        write_csv(out / "unseen.csv", HEAD, map(_cells, rows)),
        out / "unseen.md",
        *draw_alone(counts, agents, conditions, out / "unseen", joined=False),
    ]


def table_of(rows: Sequence[Row]) -> list[tuple[str, ...]]:
    """For people, in % and points; the first line is the head."""
    return [TABLE_HEAD, *map(_told, rows)]


def note_of(outcomes: Outcomes) -> str:
    errors = f" {outcomes.errors} episodes ended in an error and are in no figure." if outcomes.errors else ""
    return NOTE + errors


def _told(row: Row) -> tuple[str, ...]:
    rate = f"{100 * row.count.rate:.1f} [{100 * row.count.interval.low:.0f}, {100 * row.count.interval.high:.0f}]"
    paired = ("-", "-", "-")
    if row.pairs is not None and row.difference is not None:
        mean, low, high = (100 * value for value in row.difference)
        p = "< 0.001" if row.pairs.p_value < 0.001 else f"{row.pairs.p_value:.3f}"
        paired = (f"{mean:+.1f} [{low:+.0f}, {high:+.0f}]", str(row.pairs.n), p)
    return (row.agent, row.condition, str(row.count.successes), str(row.count.n), rate, *paired)


def _cells(row: Row) -> tuple[Any, ...]:
    paired: tuple[Any, ...] = ("",) * 7
    if row.pairs is not None and row.difference is not None:
        counted = (row.pairs.n, row.pairs.only_first, row.pairs.only_second)
        paired = (*counted, *row.difference, row.pairs.p_value)
    return (row.condition, row.agent, row.count.successes, row.count.n, row.count.rate, *row.count.interval, *paired)

"""Writes tables and charts of success under interference (`predimem.evaluation.analysis.interference`)."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from predimem.evaluation.analysis.interference import Count, Counts, Totals, condition_key, effects, totals

if TYPE_CHECKING:
    from matplotlib.axes import Axes

DPI, PANELS_A_ROW = 150, 3
MARKS = "osD^vPX<>*"
HEAD = ("variant", "condition", "successes", "n", "rate", "ci_low", "ci_high")


def write_interference(counts: Counts, out: Path) -> list[Path]:
    """Write success.csv, success_by_family.csv, effects.csv and the charts success and families (SVG and PNG).

    Rates and intervals are fractions. Raises ValueError where there is nothing to count.
    """
    if not any(count.n for count in counts.values()):
        raise ValueError("there are no episodes without an error in these files")
    out.mkdir(parents=True, exist_ok=True)
    whole = totals(counts)
    by_family = sorted(counts.items(), key=lambda item: (item[0].family, item[0].variant, condition_key(item[0][2])))
    rows = ((e.variant, e.condition, e.baseline, e.difference, e.low, e.high) for e in effects(whole))
    return [
        _write(out / "success.csv", HEAD, ((*cell, *_figures(count)) for cell, count in whole.items())),
        _write(out / "success_by_family.csv", ("family", *HEAD), ((*c, *_figures(count)) for c, count in by_family)),
        _write(out / "effects.csv", ("variant", "condition", "minus", "difference", "ci_low", "ci_high"), rows),
        *_charts(counts, whole, out),
    ]


def table_of(whole: Totals) -> list[tuple[str, ...]]:
    """The success in %, one line for each variant and one column for each condition; the first line is the head."""
    conditions = sorted({condition for _, condition in whole}, key=condition_key)
    lines = [("", *conditions, "n")]
    for variant in dict.fromkeys(variant for variant, _ in whole):
        cells = [whole.get((variant, condition)) for condition in conditions]
        rates = ("-" if cell is None or not cell.n else f"{100 * cell.rate:.1f}" for cell in cells)
        lines.append((variant, *rates, str(sum(cell.n for cell in cells if cell))))
    return lines


def _figures(count: Count) -> tuple[Any, ...]:
    return (count.successes, count.n, count.rate if count.n else "", *count.interval)


def _write(path: Path, head: Sequence[str], rows: Iterable[Sequence[Any]]) -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(head)
        writer.writerows(rows)
    return path


def _charts(counts: Counts, whole: Totals, out: Path) -> list[Path]:
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    conditions = sorted({condition for _, condition in whole}, key=condition_key)
    variants = list(dict.fromkeys(variant for variant, _ in whole))
    families = sorted({cell.family for cell in counts})
    width = max(4.6, 0.75 * len(conditions) + 1.5)

    figure, axes = plt.subplots(figsize=(width + 2.2, 3.8), dpi=DPI, layout="constrained")
    _draw(axes, whole, variants, conditions)
    least = min(count.n for count in whole.values())
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize=7, title=f"n >= {least} a point")
    paths = _save(figure, out / "success")
    plt.close(figure)

    rows = -(-len(families) // PANELS_A_ROW)
    columns = min(PANELS_A_ROW, len(families))
    size = (width * 0.8 * columns, 2.6 * rows + 0.8)
    figure, grid = plt.subplots(rows, columns, figsize=size, dpi=DPI, sharey=True, squeeze=False, layout="constrained")
    for index, panel in enumerate(grid.flat):
        panel.set_visible(index < len(families))
        if index < len(families):
            own = {(c.variant, c.condition): count for c, count in counts.items() if c.family == families[index]}
            _draw(panel, own, variants, conditions)
            panel.set_title(families[index], fontsize=9)
    handles, labels = grid.flat[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, fontsize=7)
    paths += _save(figure, out / "families")
    plt.close(figure)
    return paths


def _draw(axes: Axes, of: Totals, variants: Sequence[str], conditions: Sequence[str]) -> None:
    """Each variant beside the others at each condition, so that its interval can be seen; in % with 95 % intervals."""
    from matplotlib import pyplot as plt

    for index, variant in enumerate(variants):
        shift = 0.5 * ((index + 0.5) / len(variants) - 0.5)
        found = [(place, of[variant, c]) for place, c in enumerate(conditions) if (variant, c) in of]
        points = [(place + shift, count) for place, count in found if count.n]
        rates = [100 * count.rate for _, count in points]
        below = [max(0.0, 100 * (count.rate - count.interval.low)) for _, count in points]
        above = [max(0.0, 100 * (count.interval.high - count.rate)) for _, count in points]
        style = {"color": plt.get_cmap("tab10")(index % 10), "marker": MARKS[index % len(MARKS)]}
        axes.errorbar([x for x, _ in points], rates, (below, above), label=variant, ms=4, lw=1, capsize=2, **style)
    axes.set_xticks(range(len(conditions)), conditions, fontsize=7, rotation=30 if len(conditions) > 6 else 0)
    axes.set_ylabel("success, %")
    axes.set_ylim(0, 102)
    axes.grid(axis="y", alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)


def _save(figure: Any, stem: Path) -> list[Path]:
    paths = [stem.with_suffix(suffix) for suffix in (".svg", ".png")]
    for path in paths:
        figure.savefig(path)
    return paths

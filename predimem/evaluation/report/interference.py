"""Writes tables and charts of success under interference (`predimem.evaluation.analysis.interference`)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from predimem.evaluation.analysis.counts import Count
from predimem.evaluation.analysis.interference import Counts, Totals, condition_key, effects, totals
from predimem.evaluation.report.condition_charts import DPI, draw, draw_alone, save, width_in, write_csv

PANELS_A_ROW = 3
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
        write_csv(out / "success.csv", HEAD, ((*cell, *_figures(count)) for cell, count in whole.items())),
        write_csv(out / "success_by_family.csv", ("family", *HEAD), ((*c, *_figures(count)) for c, count in by_family)),
        write_csv(out / "effects.csv", ("variant", "condition", "minus", "difference", "ci_low", "ci_high"), rows),
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


def _charts(counts: Counts, whole: Totals, out: Path) -> list[Path]:
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    conditions = sorted({condition for _, condition in whole}, key=condition_key)
    variants = list(dict.fromkeys(variant for variant, _ in whole))
    families = sorted({cell.family for cell in counts})
    paths = draw_alone(whole, variants, conditions, out / "success")

    rows = -(-len(families) // PANELS_A_ROW)
    columns = min(PANELS_A_ROW, len(families))
    size = (width_in(conditions) * 0.8 * columns, 2.6 * rows + 0.8)
    figure, grid = plt.subplots(rows, columns, figsize=size, dpi=DPI, sharey=True, squeeze=False, layout="constrained")
    for index, panel in enumerate(grid.flat):
        panel.set_visible(index < len(families))
        if index < len(families):
            own = {(c.variant, c.condition): count for c, count in counts.items() if c.family == families[index]}
            draw(panel, own, variants, conditions)
            panel.set_title(families[index], fontsize=9)
    handles, labels = grid.flat[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, fontsize=7)
    paths += save(figure, out / "families")
    plt.close(figure)
    return paths

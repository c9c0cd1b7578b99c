"""What the tables and charts of success by condition share: interference and unseen things."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from predimem.evaluation.analysis.counts import Count

if TYPE_CHECKING:
    from matplotlib.axes import Axes

DPI = 150
MARKS = "osD^vPX<>*"


def write_csv(path: Path, head: Sequence[str], rows: Iterable[Sequence[Any]]) -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(head)
        writer.writerows(rows)
    return path


def width_in(conditions: Sequence[str]) -> float:
    """Of the axes of a chart, inches."""
    return max(4.6, 0.75 * len(conditions) + 1.5)


def draw(
    axes: Axes,
    of: Mapping[tuple[str, str], Count],
    variants: Sequence[str],
    conditions: Sequence[str],
    joined: bool = True,
) -> None:
    """Each variant beside the others at each condition, so that its interval can be seen; in % with 95 % intervals.

    of: (variant, condition) -> its count; what is not there is left out. joined: by lines, where conditions have an
    order.
    """
    from matplotlib import pyplot as plt

    for index, variant in enumerate(variants):
        shift = 0.5 * ((index + 0.5) / len(variants) - 0.5)
        found = [(place, of[variant, c]) for place, c in enumerate(conditions) if (variant, c) in of]
        points = [(place + shift, count) for place, count in found if count.n]
        rates = [100 * count.rate for _, count in points]
        below = [max(0.0, 100 * (count.rate - count.interval.low)) for _, count in points]
        above = [max(0.0, 100 * (count.interval.high - count.rate)) for _, count in points]
        style = {"color": plt.get_cmap("tab10")(index % 10), "marker": MARKS[index % len(MARKS)]}
        style["linestyle"] = "-" if joined else "none"
        axes.errorbar([x for x, _ in points], rates, (below, above), label=variant, ms=4, lw=1, capsize=2, **style)
    axes.set_xticks(range(len(conditions)), conditions, fontsize=7, rotation=30 if len(conditions) > 6 else 0)
    axes.set_ylabel("success, %")
    axes.set_ylim(0, 102)
    axes.grid(axis="y", alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)


def draw_alone(
    of: Mapping[tuple[str, str], Count],
    variants: Sequence[str],
    conditions: Sequence[str],
    stem: Path,
    joined: bool = True,
) -> list[Path]:
    """One chart with its legend, as `stem`.svg and `stem`.png."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(width_in(conditions) + 2.2, 3.8), dpi=DPI, layout="constrained")
    draw(axes, of, variants, conditions, joined)
    least = min(count.n for count in of.values())
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize=7, title=f"n >= {least} a point")
    paths = save(figure, stem)
    plt.close(figure)
    return paths


def save(figure: Any, stem: Path) -> list[Path]:
    paths = [stem.with_suffix(suffix) for suffix in (".svg", ".png")]
    for path in paths:
        figure.savefig(path)
    return paths

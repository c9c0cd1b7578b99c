"""Scaling studies: TSR and CSR of agents that differ in one quantity, against that quantity.

They are drawn as in RoboMemArena (arXiv:2605.10921), Fig. 4 a, b.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDTH_IN, HEIGHT_IN, DPI = 4.6, 3.2, 160
RATES = (  # name, value, interval, colour of Okabe and Ito, mark
    ("TSR", "success", ("ci_low", "ci_high"), "#0072b2", "o"),
    ("CSR", "csr", ("csr_ci_low", "csr_ci_high"), "#d55e00", "s"),
)


@dataclass(frozen=True)
class StudyConfig:
    """One study.

    quantity: what is varied, with its unit, for the axis
    values: agent -> its value as it is written below the axis, in the order of the axis, where they stand evenly
    """

    quantity: str
    values: dict[str, str]

    def __post_init__(self) -> None:
        if len(self.values) < 2:
            raise ValueError(f"values: a study needs two agents or more, got {list(self.values)}")


def draw_studies(results: Mapping[str, Any], studies: Mapping[str, StudyConfig], out: Path) -> list[str]:
    """Draw each study of which two agents or more have figures; return the names of the SVG files.

    It is written into `out` as `study-<name>.svg` and `.png`. Every point has its 95 % interval, and all points of a
    study are from the same seeds.
    """
    if not studies:
        return []
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    drawn = []
    for name, study in studies.items():
        agents = [agent for agent in study.values if results["mean"].get(agent, {}).get("n")]
        if len(agents) < 2:
            continue
        figure, axes = plt.subplots(figsize=(WIDTH_IN, HEIGHT_IN), dpi=DPI, layout="constrained")
        _draw(axes, study, {agent: results["mean"][agent] for agent in agents})
        for suffix in ("svg", "png"):
            figure.savefig(out / f"study-{name}.{suffix}")
        plt.close(figure)
        drawn.append(f"study-{name}.svg")
    return drawn


def _draw(axes: Axes, study: StudyConfig, means: Mapping[str, Mapping[str, Any]]) -> None:
    places = range(len(means))
    for name, value, (low, high), colour, mark in RATES:
        shares = [100 * figures[value] for figures in means.values()]
        below = [max(0.0, share - 100 * m[low]) for share, m in zip(shares, means.values(), strict=True)]
        above = [max(0.0, 100 * m[high] - share) for share, m in zip(shares, means.values(), strict=True)]
        axes.errorbar(places, shares, (below, above), color=colour, marker=mark, capsize=3, label=name)
    axes.set_xticks(list(places), [study.values[agent] for agent in means])
    axes.set_xlabel(study.quantity)
    axes.set_ylabel("%")
    axes.set_ylim(0, 102)
    axes.grid(axis="y", alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, title=f"n = {min(m['n'] for m in means.values())} for each agent", loc="lower right")

"""Draws the chart of success rates as inline SVG."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from predimem.evaluation.report.svg import LABELS, WIDTH, rect, svg, text


def success_bars(results: Mapping[str, Any]) -> str:
    """For each task one bar for each agent, with its interval; a dashed line is the best published figure."""
    parts, y = [], 0
    left, right = LABELS, 110
    span = WIDTH - left - right
    for task, cells in results["results"].items():
        y += 26
        parts.append(text(0, y, task, "strong"))
        top = y + 10
        for agent, cell in cells.items():
            y += 26
            parts.append(text(left - 10, y + 4, agent, "end"))
            parts.append(rect(left, y - 9, span, 18, "track"))
            if cell["success"] is None:
                parts.append(text(left + 8, y + 4, f"no result: {cell['errors']} errors", "faint"))
                continue
            kind = "bar own" if agent == results["config"]["agents"][0] else "bar"
            parts.append(rect(left, y - 9, span * cell["success"], 18, kind))
            low, high = left + span * cell["ci_low"], left + span * cell["ci_high"]
            ends = f"M{low:.1f} {y - 5}v10M{high:.1f} {y - 5}v10"
            parts.append(f'<path class="whisker" d="M{low:.1f} {y}H{high:.1f}{ends}"/>')
            label = f"{cell['success']:.2f}  ({cell['successes']}/{cell['n']})"
            parts.append(text(left + span + 10, y + 4, label, "number"))
        if results["published"]["tasks"][task]:
            best = results["published"]["tasks"][task][0]
            x = left + span * best["success"]
            parts.append(f'<path class="published" d="M{x:.1f} {top}V{y + 16}"/>')
            side = "end faint" if best["success"] > 0.6 else "faint"
            shift = -5 if best["success"] > 0.6 else 5
            parts.append(text(x + shift, y + 24, f"best published {best['success']:.2f} ({best['method']})", side))
        y += 34
    return svg(y, parts, "Success rates with 95 % intervals")

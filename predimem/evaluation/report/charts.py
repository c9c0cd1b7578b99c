"""Draws the charts of the report as inline SVG. Colours are CSS classes, so that light and dark both work."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from itertools import groupby
from typing import Any

WIDTH = 920
LABELS = 165  # room for the labels on the left
THUMBNAIL = 64
SUBTASK_COLOURS = 6


def success_bars(results: Mapping[str, Any]) -> str:
    """For each task one bar for each agent, with its interval; a dashed line is the best published figure."""
    parts, y = [], 0
    left, right = LABELS, 110
    span = WIDTH - left - right
    for task, cells in results["results"].items():
        y += 26
        parts.append(_text(0, y, task, "strong"))
        top = y + 10
        for agent, cell in cells.items():
            y += 26
            parts.append(_text(left - 10, y + 4, agent, "end"))
            parts.append(_rect(left, y - 9, span, 18, "track"))
            if cell["success"] is None:
                parts.append(_text(left + 8, y + 4, f"no result: {cell['errors']} errors", "faint"))
                continue
            kind = "bar own" if agent == results["config"]["agents"][0] else "bar"
            parts.append(_rect(left, y - 9, span * cell["success"], 18, kind))
            low, high = left + span * cell["ci_low"], left + span * cell["ci_high"]
            ends = f"M{low:.1f} {y - 5}v10M{high:.1f} {y - 5}v10"
            parts.append(f'<path class="whisker" d="M{low:.1f} {y}H{high:.1f}{ends}"/>')
            label = f"{cell['success']:.2f}  ({cell['successes']}/{cell['n']})"
            parts.append(_text(left + span + 10, y + 4, label, "number"))
        if results["published"]["tasks"][task]:
            best = results["published"]["tasks"][task][0]
            x = left + span * best["success"]
            parts.append(f'<path class="published" d="M{x:.1f} {top}V{y + 16}"/>')
            side = "end faint" if best["success"] > 0.6 else "faint"
            shift = -5 if best["success"] > 0.6 else 5
            parts.append(_text(x + shift, y + 24, f"best published {best['success']:.2f} ({best['method']})", side))
        y += 34
    return _svg(y, parts, "Success rates with 95 % intervals")


def timeline(trace: Mapping[str, Any]) -> str:
    """Draw the timeline of one episode: keyframes, subtasks, S2's requests and answers, S1's calls, actions, plan age.

    Of an agent without S1 and S2 it only shows the subtasks.
    """
    ticks = trace["ticks"]
    if not ticks:
        return ""
    start, unit = ticks[0]["step"], (WIDTH - LABELS - 10) / len(ticks)

    def at(step: float) -> float:
        return LABELS + (step - start) * unit

    parts: list[str] = []
    y = _draw_keyframes(parts, trace, at)
    frame_top = y
    lanes = (
        ("subtask", _draw_subtasks, 30),
        ("S2: asked → answered", _draw_s2, 24),
        ("S1: new chunk", _draw_s1, 20),
        ("action", _draw_actions, 24),
        ("plan age, steps", _draw_age, 44),
    )
    dual = any(tick["plan_arrived"] or tick["s1_latency_s"] is not None or tick["held_action"] for tick in ticks)
    for name, draw, height in lanes if dual else lanes[:1]:
        parts.append(_text(LABELS - 10, y + height / 2 + 4, name, "end"))
        draw(parts, ticks, at, unit, y, height)
        y += height + 8
    stride = next(s for s in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 10**9) if s * unit >= 24)
    first = -(-start // stride) * stride
    for step in range(first, start + len(ticks), stride):
        x = at(step) + unit / 2
        parts.insert(0, f'<path class="grid" d="M{x:.1f} {frame_top}V{y}"/>')
        parts.append(_text(x, y + 12, str(step), "middle faint"))
    parts.append(_text(LABELS - 10, y + 12, "control step", "end faint"))
    return _svg(y + 18, parts, f"Timeline of {trace['task']}, seed {trace['seed']}")


def _draw_keyframes(parts: list[str], trace: Mapping[str, Any], at: Any) -> float:
    """Draw thumbnails at their steps, moved apart where they would overlap; return the y below them."""
    shown = [(int(step), cameras) for step, cameras in trace.get("thumbnails", {}).items()]
    if not shown:
        return 6
    first_camera = next(iter(shown[0][1]))
    room = int((WIDTH - LABELS) // (THUMBNAIL + 6))
    shown = shown[:room]
    x, places = float(LABELS), []
    for step, _ in shown:
        x = max(x, at(step))
        places.append(x)
        x += THUMBNAIL + 6
    overflow = max(0.0, x - 6 - WIDTH)
    places = [max(LABELS + i * (THUMBNAIL + 6), place - overflow) for i, place in enumerate(places)]
    for place, (step, cameras) in zip(places, shown, strict=True):
        foot = THUMBNAIL + 20
        parts.append(
            f'<image x="{place:.1f}" y="0" width="{THUMBNAIL}" height="{THUMBNAIL}" '
            f'href="{escape(cameras[first_camera])}"><title>keyframe of step {step}</title></image>'
        )
        parts.append(_text(place, THUMBNAIL + 13, f"step {step}", "faint"))
        parts.append(f'<path class="lead" d="M{place:.1f} {foot}L{at(step):.1f} {foot + 14}"/>')
    parts.append(_text(LABELS - 10, THUMBNAIL / 2 + 4, "keyframes stored", "end"))
    return THUMBNAIL + 36


def _draw_subtasks(parts: list[str], ticks: Sequence[Any], at: Any, unit: float, y: float, height: float) -> None:
    order: dict[str, int] = {}
    for subtask, group in groupby(ticks, key=lambda t: t["subtask"]):
        steps = [t["step"] for t in group]
        wide = len(steps) * unit
        title = f"{subtask or 'no plan yet'}: steps {steps[0]} to {steps[-1]}"
        colour = f"span{order.setdefault(subtask, len(order)) % SUBTASK_COLOURS}" if subtask else "track"
        parts.append(_rect(at(steps[0]), y, wide, height, f"span {colour}", title))
        label = subtask or "no plan"
        letters = int((wide - 8) / 7)
        if letters >= min(len(label), 5):
            cut = label if len(label) <= letters else label[: letters - 1] + "…"
            parts.append(_text(at(steps[0]) + 5, y + height / 2 + 4, cut, "label"))


def _draw_s2(parts: list[str], ticks: Sequence[Any], at: Any, unit: float, y: float, height: float) -> None:
    """A valid answer's age on arrival is the time since it was asked for; an invalid one has no age."""
    middle = y + height / 2
    for tick in ticks:
        if not tick["plan_arrived"]:
            continue
        x, invalid = at(tick["step"]) + unit / 2, tick["plan_error"] is not None
        age = None if invalid else tick["plan_age_steps"]
        latency = "" if tick["s2_latency_s"] is None else f", {1e3 * tick['s2_latency_s']:.0f} ms"
        title = f"step {tick['step']}{latency}: {tick['plan_error'] if invalid else tick['plan_text']}"
        kind = "s2 bad" if invalid else "s2"
        back = f'<path class="{kind}" d="M{x - age * unit:.1f} {middle}H{x:.1f}"/>' if age else ""
        parts.append(
            f'<g>{back}<circle class="{kind} dot" cx="{x:.1f}" cy="{middle}" r="4"/><title>{escape(title)}</title></g>'
        )


def _draw_s1(parts: list[str], ticks: Sequence[Any], at: Any, unit: float, y: float, height: float) -> None:
    for tick in ticks:
        if tick["s1_latency_s"] is not None:
            x, middle = at(tick["step"]) + unit / 2, y + height / 2
            title = f"<title>step {tick['step']}: {1e3 * tick['s1_latency_s']:.0f} ms</title>"
            parts.append(f'<path class="s1" d="M{x:.1f} {middle - 5}l5 10h-10z">{title}</path>')


def _draw_actions(parts: list[str], ticks: Sequence[Any], at: Any, unit: float, y: float, height: float) -> None:
    """Draw a box for each step; in long episodes, where boxes would be finer than a pixel or two, one for each run."""
    gap = 1.5 if unit > 6 else 0.0
    runs = [[tick] for tick in ticks] if unit > 2 else [list(g) for _, g in groupby(ticks, key=_action_kind)]
    for run in runs:
        first, last = run[0]["step"], run[-1]["step"]
        title = f"step {first}: {_action_kind(run[0])}" if first == last else f"steps {first} to {last}"
        parts.append(_rect(at(first), y, len(run) * unit - gap, height, f"action {_action_kind(run[0])}", title))


def _action_kind(tick: Mapping[str, Any]) -> str:
    return "held" if tick["held_action"] else "stale" if tick["stale_action"] else "fresh"


def _draw_age(parts: list[str], ticks: Sequence[Any], at: Any, unit: float, y: float, height: float) -> None:
    ages = [t["plan_age_steps"] for t in ticks if t["plan_age_steps"] is not None]
    if not ages:
        parts.append(_text(LABELS + 8, y + height / 2 + 4, "no planner", "faint"))
        return
    top = max(*ages, 1)
    for tick in ticks:
        age = tick["plan_age_steps"]
        if age is not None:
            tall = max(1.0, (height - 12) * age / top)
            title = f"step {tick['step']}: plan {age} steps old"
            parts.append(_rect(at(tick["step"]), y + height - tall, max(unit - 1.5, 0.5), tall, "age", title))
            if unit > 14:
                middle = at(tick["step"]) + unit / 2
                parts.append(_text(middle, y + height - tall - 2, str(age), "middle tiny"))


def _svg(height: float, parts: Sequence[str], title: str) -> str:
    return (
        f'<svg viewBox="0 0 {WIDTH} {height:.0f}" role="img" aria-label="{escape(title)}" '
        f'xmlns="http://www.w3.org/2000/svg">{"".join(parts)}</svg>'
    )


def _rect(x: float, y: float, width: float, height: float, kind: str, title: str = "") -> str:
    inside = f"<title>{escape(title)}</title>" if title else ""
    size = f'width="{width:.1f}" height="{height:.1f}"'
    return f'<rect class="{kind}" x="{x:.1f}" y="{y:.1f}" {size} rx="2">{inside}</rect>'


def _text(x: float, y: float, text: str, kind: str = "") -> str:
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}">{escape(text)}</text>'

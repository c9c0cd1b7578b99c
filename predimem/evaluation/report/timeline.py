"""Draws the timeline of one episode: what S1 and S2 did at each control step, and where it went wrong."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from html import escape
from itertools import groupby
from textwrap import shorten, wrap
from typing import Any

from predimem.evaluation.analysis.mistakes import in_words
from predimem.evaluation.report.svg import LABELS, WIDTH, rect, svg, text
from predimem.evaluation.report.terms import TERMS

SUBTASK_COLOURS = 6
MARK_PX = 30  # room for the words at the mark of a mistake
LETTER_PX = 8.4  # about the width of a letter at the mark
NUMBER_PX = 17  # the width of a keyframe's number

Place = Callable[[float], float]  # control step -> x


def timeline(trace: Mapping[str, Any]) -> str:
    """Draw one episode: keyframes, subtasks, S2's requests and answers, S1's calls, actions, plan age, its mistake.

    Of an agent without S1 and S2 it only shows the subtasks; of an episode without ticks nothing.
    """
    ticks = trace.get("ticks")
    if not ticks:
        return ""
    start, unit = ticks[0]["step"], (WIDTH - LABELS - 10) / len(ticks)

    def at(step: float) -> float:
        return LABELS + (step - start) * unit

    parts: list[str] = []
    mistake = trace.get("mistake")
    top = y = MARK_PX if mistake else 4
    lanes = (
        ("subtask", "subtask", _draw_subtasks, 32),
        ("keyframes", "keyframe", _draw_keyframes, 24),
        ("S2: asked → answered", "S2", _draw_s2, 24),
        ("S1: new chunk", "S1", _draw_s1, 20),
        ("action", "stale", _draw_actions, 24),
        ("plan age, steps", "plan age", _draw_age, 44),
    )
    dual = any(tick["plan_arrived"] or tick["s1_latency_s"] is not None or tick["held_action"] for tick in ticks)
    for name, word, draw, height in lanes if dual else lanes[:1]:
        parts.append(text(LABELS - 10, y + height / 2 + 4, name, "end", TERMS[word]))
        draw(parts, ticks, at, unit, y, height)
        y += height + 8
    stride = next(s for s in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 10**9) if s * unit >= 34)
    first = -(-start // stride) * stride
    for step in range(first, start + len(ticks), stride):
        x = at(step) + unit / 2
        parts.insert(0, f'<path class="grid" d="M{x:.1f} {top}V{y}"/>')
        parts.append(text(x, y + 12, str(step), "middle faint"))
    parts.append(text(LABELS - 10, y + 12, "control step", "end faint", TERMS["control step"]))
    if mistake:
        _draw_mistake(parts, mistake, at, y)
    return svg(y + 18, parts, f"Timeline of {trace['task']}, seed {trace['seed']}")


def keyframes_of(trace: Mapping[str, Any]) -> list[tuple[int, int]]:
    """(step, step at which it was stored) of every keyframe that memory ever held, in the order in which they came."""
    stored: dict[int, int] = {}
    for tick in trace.get("ticks", ()):
        for step in tick["keyframe_steps"]:
            stored.setdefault(step, tick["step"])
    return sorted(stored.items(), key=lambda pair: (pair[1], pair[0]))


def _draw_mistake(parts: list[str], mistake: Mapping[str, Any], at: Place, bottom: float) -> None:
    """A line through all lanes where it began, with words above, and a cross where it was done."""
    x, words = at(mistake["step"]), f"step {mistake['step']}: {in_words(mistake)}"
    right = x < (LABELS + WIDTH) / 2
    room = int((WIDTH - x if right else x) / LETTER_PX) - 2
    short = shorten(f"step {mistake['step']}: {mistake['text']}", room, placeholder=" …")
    parts.append(f'<path class="mistake" d="M{x:.1f} 6V{bottom:.1f}"><title>{escape(words)}</title></path>')
    parts.append(text(x + (6 if right else -6), 16, f"✗ {short}", "mistake" if right else "mistake end"))
    if mistake["done_step"] is not None:
        done = at(mistake["done_step"])
        title = f"step {mistake['done_step']}: {mistake['text']}"
        parts.append(
            f'<g><path class="mistake cross" d="M{done - 5:.1f} {MARK_PX + 10}l10 10m0 -10l-10 10"/>'
            f"<title>{escape(title)}</title></g>"
        )


def _draw_keyframes(parts: list[str], ticks: Sequence[Any], at: Place, unit: float, y: float, height: float) -> None:
    """A number for each, at the step that it shows, moved to the right where two would overlap."""
    found, after, middle = keyframes_of({"ticks": ticks}), float(LABELS), y + height / 2
    if not found:
        parts.append(text(LABELS + 8, middle + 4, "none: the memory bank stays empty", "faint"))
        return
    steps = sorted(step for step, _ in found)
    ordered = [step for step, _ in found]
    last = WIDTH - NUMBER_PX * len(steps)
    for i, step in enumerate(steps):
        x = max(after, min(at(step), max(last + NUMBER_PX * i, after)))
        after = x + NUMBER_PX
        number = ordered.index(step) + 1
        parts.append(rect(x, y + 3, NUMBER_PX - 2, height - 6, "keyframe", f"keyframe {number}: step {step}"))
        parts.append(text(x + NUMBER_PX / 2 - 1, middle + 4, str(number), "middle on"))


def _draw_subtasks(parts: list[str], ticks: Sequence[Any], at: Place, unit: float, y: float, height: float) -> None:
    order: dict[str, int] = {}
    for subtask, group in groupby(ticks, key=lambda t: t["subtask"]):
        steps = [t["step"] for t in group]
        wide = len(steps) * unit
        title = f"{subtask or 'no plan yet'}: steps {steps[0]} to {steps[-1]}"
        colour = f"span{order.setdefault(subtask, len(order)) % SUBTASK_COLOURS}" if subtask else "track"
        parts.append(rect(at(steps[0]), y, wide, height, f"span {colour}", title))
        label = subtask or "no plan"
        letters = int((wide - 10) / 6.2)
        if letters >= min(len(label), 6):
            lines = wrap(label, letters, max_lines=2, placeholder="…")
            for row, line in enumerate(lines):
                middle = y + height / 2 + 4 + 12 * (row - (len(lines) - 1) / 2)
                parts.append(text(at(steps[0]) + 4, middle, line, "label"))


def _draw_s2(parts: list[str], ticks: Sequence[Any], at: Place, unit: float, y: float, height: float) -> None:
    """A valid answer's age on arrival is the time since it was asked for; an invalid one has no age."""
    middle = y + height / 2
    for tick in ticks:
        if not tick["plan_arrived"]:
            continue
        x, invalid = at(tick["step"]) + unit / 2, tick["plan_error"] is not None
        age = None if invalid or tick.get("plan_step") is None else tick["step"] - tick["plan_step"]
        latency = "" if tick["s2_latency_s"] is None else f", {1e3 * tick['s2_latency_s']:.0f} ms"
        title = f"step {tick['step']}{latency}: {tick['plan_error'] if invalid else tick['plan_text']}"
        kind = "s2 bad" if invalid else "s2"
        back = f'<path class="{kind}" d="M{x - age * unit:.1f} {middle}H{x:.1f}"/>' if age else ""
        radius = 4 if unit > 2 or invalid else 2
        parts.append(
            f'<g>{back}<circle class="{kind} dot" cx="{x:.1f}" cy="{middle}" r="{radius}"/>'
            f"<title>{escape(title)}</title></g>"
        )


def _draw_s1(parts: list[str], ticks: Sequence[Any], at: Place, unit: float, y: float, height: float) -> None:
    """A triangle for each call; in long episodes, where they would run together, a bar for each run of calls."""
    called = [tick for tick in ticks if tick["s1_latency_s"] is not None]
    middle = y + height / 2
    if unit > 2:
        for tick in called:
            x = at(tick["step"]) + unit / 2
            title = f"<title>step {tick['step']}: {1e3 * tick['s1_latency_s']:.0f} ms</title>"
            parts.append(f'<path class="s1" d="M{x:.1f} {middle - 5}l5 10h-10z">{title}</path>')
        return
    every = 4 / unit  # steps: closer calls are drawn as one
    runs: list[list[int]] = []
    for tick in called:
        if runs and tick["step"] - runs[-1][-1] <= every:
            runs[-1].append(tick["step"])
        else:
            runs.append([tick["step"]])
    for run in runs:
        title = f"{len(run)} calls from step {run[0]} to {run[-1]}"
        parts.append(rect(at(run[0]), middle - 3, max(1.0, (run[-1] - run[0] + 1) * unit), 6, "s1", title))


def _draw_actions(parts: list[str], ticks: Sequence[Any], at: Place, unit: float, y: float, height: float) -> None:
    """Draw a box for each step; in long episodes, where boxes would be finer than a pixel or two, one for each run."""
    gap = 1.5 if unit > 6 else 0.0
    runs = [[tick] for tick in ticks] if unit > 2 else [list(g) for _, g in groupby(ticks, key=_action_kind)]
    for run in runs:
        first, last, kind = run[0]["step"], run[-1]["step"], _action_kind(run[0])
        steps = f"step {first}" if first == last else f"steps {first} to {last}"
        title = f"{steps}: {kind}: {TERMS[kind]}"
        parts.append(rect(at(first), y, len(run) * unit - gap, height, f"action {kind}", title))


def _action_kind(tick: Mapping[str, Any]) -> str:
    return "held" if tick["held_action"] else "stale" if tick["stale_action"] else "fresh"


def _draw_age(parts: list[str], ticks: Sequence[Any], at: Place, unit: float, y: float, height: float) -> None:
    """A bar for each step; in long episodes an outline."""
    ages = [t["plan_age_steps"] for t in ticks if t["plan_age_steps"] is not None]
    if not ages:
        parts.append(text(LABELS + 8, y + height / 2 + 4, "no planner", "faint"))
        return
    top, foot = max(*ages, 1), y + height
    if unit <= 2:
        known = [tick for tick in ticks if tick["plan_age_steps"] is not None]
        points = [(at(t["step"]), foot - (height - 12) * t["plan_age_steps"] / top) for t in known]
        path = "".join(f"L{x:.1f} {tip:.1f}" for x, tip in points)
        title = f"<title>at most {top} steps old</title>"
        shape = f"M{points[0][0]:.1f} {foot}{path}L{points[-1][0]:.1f} {foot}z"
        parts.append(f'<path class="age" d="{shape}">{title}</path>')
        return
    for tick in ticks:
        age = tick["plan_age_steps"]
        if age is not None:
            tall = max(1.0, (height - 12) * age / top)
            title = f"step {tick['step']}: plan {age} steps old"
            parts.append(rect(at(tick["step"]), foot - tall, max(unit - 1.5, 0.5), tall, "age", title))
            if unit > 14:
                middle = at(tick["step"]) + unit / 2
                parts.append(text(middle, foot - tall - 2, str(age), "middle tiny"))

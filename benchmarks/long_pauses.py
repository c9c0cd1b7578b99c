"""How far agents get in long tasks: to the minute's pause, over it, and to the end.

A row of docs/results.md (`python -m benchmarks.results_page`). Stages pass in order, so an episode came to the pause if
all stages before it were passed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from benchmarks.mikasa_table import right_aligned
from predimem.envs.arena.layout import draw_layout
from predimem.envs.arena.long.templates import long_task

HEAD = (
    "agent config",
    "episodes",
    "came to the pause",
    "passed a stage after it",
    "passed three after it",
    "succeeded",
)
AFTER = (0, 1, 3)  # stages after the pause


def pause_stage(task: str, seed: int) -> int:
    """The stage that the pause of an episode comes before, counted from 0. task: a template's name, such as long-04."""
    known = long_task(task)
    (pause,) = known.variants[draw_layout(known, seed).variant].pauses
    return pause.stage


def table(records: Iterable[Mapping[str, Any]]) -> str:
    """records: episodes of long tasks, by which agents they were played, and in which order these appear."""
    reached: dict[str, Counter[str]] = {}
    for record in records:
        counts = reached.setdefault(record["agent"], Counter())
        beyond = record["stages_passed"] - pause_stage(record["task"], record["seed"])
        counts["episodes"] += 1
        counts.update(head for head, after in zip(HEAD[2:5], AFTER, strict=True) if beyond >= after)
        counts["succeeded"] += record["status"] == "success"
    lines = [[f"`{agent}`", *(str(counts[head]) for head in HEAD[1:])] for agent, counts in reached.items()]
    return right_aligned(HEAD, lines)

"""How far agents get in long tasks: to the minute's pause, over it, and to the end.

    python -m benchmarks.long_pauses      # what the seeds of training and evaluation have in common

The table is one of docs/results.md (`python -m benchmarks.results_page`). Stages pass in order, so an episode came to
the pause if all stages before it were passed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from benchmarks.mikasa_table import right_aligned
from predimem.envs.arena.layout import draw_layout
from predimem.envs.arena.long.sentences import sentences
from predimem.envs.arena.long.templates import TEMPLATES, long_task
from predimem.envs.arena.variant import Variant

HEAD = (
    "agent config",
    "episodes",
    "passed no stage",
    "came to the pause",
    "ran out of time in it",
    "passed a stage after it",
    "passed three after it",
    "succeeded",
)
PASSED, AFTER = (HEAD[3], HEAD[5], HEAD[6]), (0, 1, 3)  # stages after the pause
TRAINED, EVALUATED = range(50000, 50020), range(900000, 900003)  # seeds


def pause_stage(task: str, seed: int) -> int:
    """The stage that the pause of an episode comes before, counted from 0. task: a template's name, such as long-04."""
    (pause,) = _composition(task, seed).pauses
    return pause.stage


def table(records: Iterable[Mapping[str, Any]]) -> str:
    """records: episodes of long tasks, by which agents they were played, and in which order these appear."""
    reached: dict[str, Counter[str]] = {}
    for record in records:
        counts = reached.setdefault(record["agent"], Counter())
        beyond = record["stages_passed"] - pause_stage(record["task"], record["seed"])
        counts["episodes"] += 1
        counts["passed no stage"] += record["stages_passed"] == 0
        counts.update(head for head, after in zip(PASSED, AFTER, strict=True) if beyond >= after)
        counts[HEAD[4]] += beyond == 0 and record["message"].startswith("out of time")
        counts["succeeded"] += record["status"] == "success"
    lines = [[f"`{agent}`", *(str(counts[head]) for head in HEAD[1:])] for agent, counts in reached.items()]
    return right_aligned(HEAD, lines)


def _composition(task: str, seed: int) -> Variant:
    known = long_task(task)
    return known.variants[draw_layout(known, seed).variant]


def main() -> None:
    trained = [_composition(template.name, seed) for template in TEMPLATES for seed in TRAINED]
    evaluated = [_composition(template.name, seed) for template in TEMPLATES for seed in EVALUATED]
    new = sum(composition not in trained for composition in evaluated)
    print(f"{new} of {len(evaluated)} episodes of the evaluation have compositions that training has not")
    for sentence in (text for text in sentences() if "in this order" in text):
        print(f"{sum(sentence in one.instruction for one in trained)} of {len(trained)} in training: {sentence}")


if __name__ == "__main__":
    main()

"""The success of agents on MIKASA-Robo's tasks beside the best published figure, from a results file.

    python -m benchmarks.mikasa_table results/mikasa_touch.json

`benchmarks/results_page.py` writes the same table into docs/results.md.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from predimem.envs.mikasa.published import FIVE_TASKS, MEANS, published
from predimem.evaluation.analysis.compact import episodes_of
from predimem.evaluation.analysis.metrics import wilson_interval

Counts = dict[str, dict[str, tuple[int, int]]]  # task -> agent -> (successes, episodes)


def counts_of(results: Mapping[str, Any]) -> Counts:
    """How often each agent succeeded, of the episodes that were not lost to an error."""
    played: dict[str, dict[str, list[bool]]] = {}
    for record in episodes_of(results):
        if record["status"] != "error":
            played.setdefault(record["task"], {}).setdefault(record["agent"], []).append(record["status"] == "success")
    return {task: {agent: (sum(won), len(won)) for agent, won in cells.items()} for task, cells in played.items()}


def table(counts: Counts, agents: Sequence[str]) -> str:
    """A line a task, one a family, and one for the tasks of the five-task protocol that were played."""
    head = ["task", *(f"`{agent}`" for agent in agents), "best published", "by"]
    lines = [_task_line(task, counts[task], agents) for task in counts]
    for family in dict.fromkeys(map(_family, counts)):
        members = [task for task in counts if _family(task) == family]
        if len(members) > 1:
            lines.append(_mean_line(f"mean of {family}", counts, members, agents))
    five = [task for task in counts if _short(task) in FIVE_TASKS]
    if five:
        best = max(MEANS.figures, key=lambda row: row.success)
        line = _mean_line(f"mean of the {len(five)} that were played of the five-task protocol", counts, five, agents)
        lines.append([*line[:-2], f"{best.success:.2f} (all five)", best.method])
    return "\n".join(f"| {' | '.join(line)} |" for line in (head, ["---", *["---:"] * (len(head) - 2), "---"], *lines))


def by_family(counts: Counts, agents: Sequence[str]) -> str:
    """A line an agent: episodes a task, and the unweighted mean over the tasks of each family and over all of them."""
    families: dict[str, list[str]] = {}
    for task in counts:
        families.setdefault(_family(task), []).append(task)
    head = ["agent config", "episodes a task", *families, "mean of all tasks"]
    lines = [
        [
            f"`{agent}`",
            _episodes(counts, agent),
            *(_mean(counts, tasks, agent) for tasks in (*families.values(), counts)),
        ]
        for agent in agents
    ]
    return right_aligned(head, lines)


def right_aligned(head: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """A Markdown table of which all columns but the first are figures."""
    return "\n".join(f"| {' | '.join(line)} |" for line in (head, ["---", *["---:"] * (len(head) - 1)], *lines))


def _episodes(counts: Counts, agent: str) -> str:
    """`10`, or `9 to 10` where tasks differ."""
    played = sorted({cells[agent][1] for cells in counts.values() if agent in cells})
    return " to ".join(str(n) for n in dict.fromkeys((played[0], played[-1])))


def _task_line(task: str, cells: dict[str, tuple[int, int]], agents: Sequence[str]) -> list[str]:
    best = next(iter(published(task)), None)
    figures = [f"{best.success:.2f}", best.method] if best else ["", ""]
    return [_short(task), *(rate(*cells[agent]) if agent in cells else "" for agent in agents), *figures]


def rate(won: int, n: int) -> str:
    interval = wilson_interval(won, n)
    return f"{won}/{n} [{interval.low:.2f}, {interval.high:.2f}]"


def _mean_line(name: str, counts: Counts, tasks: Sequence[str], agents: Sequence[str]) -> list[str]:
    return [name, *(_mean(counts, tasks, agent) for agent in agents), "", ""]


def _mean(counts: Counts, tasks: Collection[str], agent: str) -> str:
    """Over these tasks; empty unless the agent has played all of them."""
    rates = [won / n for won, n in (counts[task][agent] for task in tasks if agent in counts[task])]
    return f"{sum(rates) / len(rates):.2f}" if len(rates) == len(tasks) else ""


def _short(task: str) -> str:
    return task.removesuffix("-VLA-v0")


def _family(task: str) -> str:
    """The letters with which a task's name begins: RememberColor of RememberColor9-VLA-v0."""
    name = _short(task)
    return name[: next((i for i, letter in enumerate(name) if letter.isdigit()), len(name))]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path, help="a results.json of `predimem eval --benchmark mikasa`")
    parser.add_argument("--agents", nargs="+", help="which agents; default: all")
    args = parser.parse_args()
    counts = counts_of(json.loads(args.results.read_text()))
    print(table(counts, args.agents or list(dict.fromkeys(agent for cells in counts.values() for agent in cells))))


if __name__ == "__main__":
    main()

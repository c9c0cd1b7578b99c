"""The success on RoboMME's tasks beside published figures, from a results file.

    python -m benchmarks.robomme_table runs/eval/robomme/results.json

The published figures are shares of 50 episodes a run. Agents that have not played all tasks are left out.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from benchmarks.mikasa_table import Counts, counts_of, rate, right_aligned
from predimem.envs.robomme.published import published
from predimem.evaluation.run.config import read_results

LEARNED = ("oracle-memory", "predimem", "native-video", "framesamp", "no-keyframes", "reactive")
SKILLS = tuple(f"{agent}-skills" for agent in LEARNED if agent != "reactive")
BESIDE = ("MemER (keyframes)", "FrameSamp+Modul", "π0.5")


def table(counts: Counts, agents: Sequence[str] = (*SKILLS, *LEARNED)) -> str:
    """A line a task, and one for their unweighted mean."""
    agents = [agent for agent in agents if all(agent in cells for cells in counts.values())]
    head = ["task", *(f"`{agent}`" for agent in agents), *BESIDE]
    lines = [[task, *(rate(*cells[agent]) for agent in agents), *_published(task)] for task, cells in counts.items()]
    means = (sum(cells[agent][0] / cells[agent][1] for cells in counts.values()) / len(counts) for agent in agents)
    beside = ([float(_published(task)[i]) for task in counts] for i in range(len(BESIDE)))
    lines.append(["mean", *(f"{mean:.2f}" for mean in means), *(f"{sum(row) / len(row):.2f}" for row in beside)])
    return right_aligned(head, lines)


def _published(task: str) -> list[str]:
    figures = {row.method: row.success for row in published(task)}
    return [f"{figures[method]:.2f}" for method in BESIDE]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path, help="a results file of `predimem eval --benchmark robomme`")
    print(table(counts_of(read_results(parser.parse_args().results))))

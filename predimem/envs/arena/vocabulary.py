"""Everything that the arena's tasks say: instructions and labels of subtasks, whatever a seed draws.

A planner's tokenizer knows them beforehand. The part of its recipe that lists them is written by
`python -m predimem.envs.arena.vocabulary > configs/planner/arena_labels.yaml`; a test compares the two.
"""

from __future__ import annotations

from collections.abc import Iterable

import yaml

from predimem.envs.arena.task import Task
from predimem.envs.arena.tasks import TASKS


def instructions(tasks: Iterable[Task] = TASKS) -> list[str]:
    """What the robot is told, in the order of the tasks, each once."""
    return list(dict.fromkeys(variant.instruction for task in tasks for variant in task.variants))


def labels(tasks: Iterable[Task] = TASKS) -> list[str]:
    """What S2 may say, in the order of the tasks, each once."""
    subtasks = (s for task in tasks for variant in task.variants for s in variant.subtasks)
    return list(dict.fromkeys(subtask.label for subtask in subtasks))


def as_yaml() -> str:
    how = "python -m predimem.envs.arena.vocabulary > configs/planner/arena_labels.yaml"
    head = f"# All instructions and labels of the arena. Written by `{how}`\n"
    known = {"base": {"tokenizer": {"instructions": instructions(), "subtasks": labels()}}}
    return head + yaml.safe_dump(known, sort_keys=False, width=1000)


if __name__ == "__main__":
    print(as_yaml(), end="")

"""Prints the table of the long tasks in docs/guides/arena-long.md: `python -m predimem.envs.arena.long`."""

from __future__ import annotations

from predimem.envs.arena.long.templates import TEMPLATES, Template, long_tasks
from predimem.envs.arena.task import Task

HEAD = "| task | title | stages | of these by memory | what has to be remembered, in composition 0 | horizon |"


def table() -> str:
    """In Markdown; the horizon is in control steps."""
    rows = [_row(template, task) for template, task in zip(TEMPLATES, long_tasks(), strict=True)]
    return "\n".join([HEAD, "| --- | --- | ---: | ---: | --- | ---: |", *rows])


def _row(template: Template, task: Task) -> str:
    by_memory = sum(subtask.memory is not None for subtask in task.variants[0].subtasks)
    things = "; ".join(template.remember(0))
    return f"| `{task.name}` | {task.title} | {task.stages} | {by_memory} | {things} | {task.horizon} |"


if __name__ == "__main__":
    print(table())

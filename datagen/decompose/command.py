"""The command `predimem decompose`, which gives the steps of one episode of the arena as JSON and as a table."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from datagen.decompose import rules
from datagen.decompose.config import VlmConfig
from datagen.decompose.references import disagreement
from datagen.decompose.scene import first_image, instruction_of, variant_of
from datagen.decompose.steps import Step, to_json
from datagen.decompose.vlm import VlmDecomposer
from datagen.decompose.vocabulary import vocabulary_of
from datagen.decompose.waiting import OnScreen
from predimem.core.files import write_text
from predimem.envs.arena.task import Task
from predimem.envs.arena.tasks import task_of


def decompose_episode(
    task: int | str, seed: int, instruction: str | None, model: VlmConfig | None, out: Path | None
) -> None:
    """Print the steps as JSON, or write them to `out`, and a table for people to standard error.

    The table is followed by a sentence that says whether these steps are those of the task. A model gets the first
    image of the episode; without one the offline decomposer reads the instruction. Raises ValueError for bad input,
    and what the decomposers raise.
    """
    if not 0 <= seed < 2**32:
        raise ValueError(f"expected a seed in [0, 2**32), got {seed}")
    chosen = task_of(task)
    instruction = instruction_of(chosen, seed) if instruction is None else instruction
    steps = _ask(model, chosen, seed, instruction) if model else rules.decompose(instruction, vocabulary_of(chosen))
    print(f"{instruction}\n{_table(steps)}\n{_verdict(steps, chosen, seed)}", file=sys.stderr)
    if out is None:
        print(to_json(steps))
    else:
        write_text(out, to_json(steps) + "\n")
        print(f"-> {out}", file=sys.stderr)


def _ask(model: VlmConfig, task: Task, seed: int, instruction: str) -> tuple[Step, ...]:
    screen = OnScreen()
    decomposer = VlmDecomposer(model, screen)
    print("rendering the first image of the episode ...", file=sys.stderr, flush=True)
    image = first_image(task, seed)
    try:
        return decomposer.decompose(instruction, image, vocabulary_of(task))
    finally:
        screen.done()


def _verdict(steps: Sequence[Step], task: Task, seed: int) -> str:
    variant = variant_of(task, seed)
    difference = disagreement(steps, variant)
    if not difference:
        return f"These are the {len(variant.subtasks)} subtasks of task {task.name} with seed {seed}."
    return (
        f"These are not the subtasks of task {task.name} with seed {seed}: {difference}. `predimem datagen` would "
        "discard the episode (cause: decomposition), because the task's labels do not fit these steps."
    )


def _table(steps: Sequence[Step]) -> str:
    rows = [("step", "planner", "target", "subtask")]
    rows += [(str(step.step_id), str(step.planner), step.target, step.subtask) for step in steps]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    return "\n".join(
        "  ".join([*(f"{cell:<{w}}" for cell, w in zip(row, widths, strict=False)), row[3]]) for row in rows
    )

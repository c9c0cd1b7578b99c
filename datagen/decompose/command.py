"""The command `predimem decompose`, which gives the steps of one episode of the arena as JSON and as a table."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from datagen.decompose import rules
from datagen.decompose.scene import first_image, instruction_of
from datagen.decompose.steps import Step, to_json
from datagen.decompose.vlm import VlmConfig, VlmDecomposer
from datagen.decompose.vocabulary import vocabulary_of
from predimem.core.files import write_text
from predimem.envs.arena.tasks import task_of


def decompose_episode(
    task: int | str, seed: int, instruction: str | None, endpoint: str | None, model: str | None, out: Path | None
) -> None:
    """Print the steps as JSON, or write them to `out`, and print a table for people to standard error.

    If an endpoint and a model are given, the model is asked and gets the first image of the episode; otherwise the
    offline decomposer reads the instruction. Raises ValueError for bad input, and what the decomposers raise.
    """
    if (endpoint is None) != (model is None):
        raise ValueError("to ask a model give both --endpoint and --model; give neither to decompose by rules")
    if not 0 <= seed < 2**32:
        raise ValueError(f"expected a seed in [0, 2**32), got {seed}")
    chosen = task_of(task)
    vocabulary = vocabulary_of(chosen)
    instruction = instruction_of(chosen, seed) if instruction is None else instruction
    if model is None:
        steps = rules.decompose(instruction, vocabulary)
    else:
        decomposer = VlmDecomposer(VlmConfig(model=model, base_url=endpoint))
        steps = decomposer.decompose(instruction, first_image(chosen, seed), vocabulary)
    print(f"{instruction}\n{_table(steps)}", file=sys.stderr)
    if out is None:
        print(to_json(steps))
    else:
        write_text(out, to_json(steps) + "\n")
        print(f"-> {out}", file=sys.stderr)


def _table(steps: Sequence[Step]) -> str:
    rows = [("step", "planner", "target", "subtask")]
    rows += [(str(step.step_id), str(step.planner), step.target, step.subtask) for step in steps]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    return "\n".join(
        "  ".join([*(f"{cell:<{w}}" for cell, w in zip(row, widths, strict=False)), row[3]]) for row in rows
    )

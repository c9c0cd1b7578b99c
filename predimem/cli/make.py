"""Commands that make data: `datagen`, and `decompose`, its first step, by itself."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from predimem.cli.options import Workers, split


def datagen(
    config: Annotated[Path, typer.Option(help="What to make.")] = Path("configs/datagen.yaml"),
    out: Annotated[str | None, typer.Option(help="Folder for the episodes; default: the config's.")] = None,
    workers: Workers = 1,
    ray: Annotated[str | None, typer.Option(help="Run on Ray: a cluster's address, or `local`.")] = None,
    tasks: Annotated[str | None, typer.Option(help="Of the arena: tasks or task files, comma-separated.")] = None,
    episodes: Annotated[int | None, typer.Option(help="Of the arena: seeds of each task.")] = None,
    retry_errors: Annotated[bool, typer.Option("--retry-errors", help="Play again what ended in an error.")] = False,
) -> None:
    """Make demonstrations: of the arena from perception, of mikasa by its expert. Ctrl-C, then again: resumes."""
    from datagen.command import make_data

    changes = {"out": out, "tasks": None if tasks is None else tuple(split(tasks)), "episodes": episodes}
    given = {name: value for name, value in changes.items() if value is not None}
    make_data(config, workers, ray, given, retry_errors)


def decompose(
    task: Annotated[str, typer.Option(help="Task of the arena: number, name, Gymnasium id, or file (.py).")],
    seed: Annotated[int, typer.Option(help="Seed of the episode.")] = 0,
    instruction: Annotated[str | None, typer.Option(help="Other words for the task; default: its own.")] = None,
    endpoint: Annotated[str | None, typer.Option(help="Ask a model at this OpenAI-compatible address.")] = None,
    model: Annotated[str | None, typer.Option(help="The model's name at the endpoint.")] = None,
    out: Annotated[Path | None, typer.Option(help="File for the JSON; default: standard output.")] = None,
) -> None:
    """Break an instruction of the arena down into steps: by rules, or by a model that sees the scene."""
    from datagen.decompose.command import decompose_episode

    decompose_episode(task, seed, instruction, endpoint, model, out)

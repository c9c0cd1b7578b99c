"""Commands that make data: `datagen`, and `decompose`, its first step, by itself."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from predimem.cli.options import AnswerSeconds, AnswerTokens, Workers, check_out, split
from predimem.core.files import check_file


def datagen(
    config: Annotated[Path, typer.Option(help="YAML file that says what data to make, see configs/.")] = Path(
        "configs/datagen.yaml"
    ),
    out: Annotated[str | None, typer.Option(help="Folder for the data; default: as in the config.")] = None,
    workers: Workers = 1,
    ray: Annotated[str | None, typer.Option(help="Run on Ray: the address of a cluster, or `local`.")] = None,
    tasks: Annotated[
        str | None, typer.Option(help="Tasks of the arena, or task files, comma-separated; default: as in the config.")
    ] = None,
    episodes: Annotated[
        int | None, typer.Option(help="How many seeds of each task of the arena; default: as in the config.")
    ] = None,
    retry_errors: Annotated[
        bool, typer.Option("--retry-errors", help="Play those episodes again that ended in an error.")
    ] = False,
) -> None:
    """Make training data, such as demonstrations of the arena (from perception) or of MIKASA (by its expert).

    After Ctrl-C the same command goes on where it was interrupted.
    """
    check_out(out, config)
    from datagen.command import make_data

    changes = {"out": out, "tasks": None if tasks is None else tuple(split(tasks)), "episodes": episodes}
    given = {name: value for name, value in changes.items() if value is not None}
    make_data(config, workers, ray, given, retry_errors)


def decompose(
    task: Annotated[str, typer.Option(help="The task of the arena: a number, a name, a Gymnasium id or a file (.py).")],
    seed: Annotated[int, typer.Option(help="Seed of the episode.")] = 0,
    instruction: Annotated[
        str | None, typer.Option(help="Other words for the task; default: the task's own instruction.")
    ] = None,
    endpoint: Annotated[
        str | None, typer.Option(help="Ask a model at this OpenAI-compatible address; default: use rules.")
    ] = None,
    model: Annotated[str | None, typer.Option(help="The name of the model at that address.")] = None,
    timeout: AnswerSeconds = None,
    max_tokens: AnswerTokens = None,
    out: Annotated[Path | None, typer.Option(help="File for the JSON; default: standard output.")] = None,
) -> None:
    """Break an instruction of the arena down into steps, by rules or by a model that sees the scene."""
    if (endpoint is None) != (model is None):
        raise ValueError("to ask a model give both --endpoint and --model; give neither to decompose by rules")
    limits = {"timeout_s": timeout, "max_tokens": max_tokens}
    given: dict[str, Any] = {name: limit for name, limit in limits.items() if limit is not None}
    if model is None and given:
        raise ValueError("--timeout and --max-tokens are for a model: give --endpoint and --model with them")
    if out is not None:
        check_file(out)
    from datagen.decompose.command import decompose_episode
    from datagen.decompose.config import VlmConfig

    vlm = None if model is None else VlmConfig(model, endpoint, **given)
    decompose_episode(task, seed, instruction, vlm, out)

"""`predimem play`: one episode, filmed."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from predimem.cli.options import Weights
from predimem.rendering.vulkan import use_driver


def play_one(
    task: Annotated[str, typer.Option(help="Task of the arena: number, name, Gymnasium id, or file (.py).")],
    seed: Annotated[int, typer.Option(help="Seed of the episode.")] = 0,
    agent: Annotated[str, typer.Option(help="`oracle`, `script`, `random`, or a row of --config.")] = "oracle",
    image_px: Annotated[int | None, typer.Option(help="Width and height of the pictures; default: 256.")] = None,
    out: Annotated[Path, typer.Option(help="The video (.mp4), or the folder for it.")] = Path("runs/play"),
    config: Annotated[Path | None, typer.Option(help="Rows of learned systems, see configs/eval/.")] = None,
    weights: Weights = None,
) -> None:
    """Play one episode of the arena and film it: both cameras, the subtask, the stages, the outcome."""
    from predimem.evaluation.run.agents import Player
    from predimem.evaluation.run.config import evaluation_settings
    from predimem.evaluation.run.film import film_episode
    from predimem.evaluation.run.names import check_agents, check_weights
    from predimem.evaluation.run.tasks import task_files, task_names

    pixels = image_px or (256 if config is None else None)
    given = {"suite": "arena", "play.image_px": pixels, "play.weights": weights}
    settings = evaluation_settings(config, given)
    check_agents([agent], "arena", settings.rows)
    (name,) = task_names("arena", [task])
    play = replace(settings.play, suite="arena", rows=settings.rows, task_files=task_files("arena", [task]))
    check_weights([agent], play)
    use_driver()
    path = out if out.suffix == ".mp4" else out / f"{name}-{agent}-seed{seed}.mp4"
    with closing(Player(play)) as player:
        result = film_episode(player, name, agent, seed, path)
    stages = f"{result.stages_passed} of {result.stages_total} stages"
    reason = f" ({result.message.splitlines()[0]})" if result.message else ""
    print(f"{name}, {agent}, seed {seed}: {result.status} after {result.steps} steps, {stages}{reason}")
    if not path.is_file():
        raise SystemExit(1)
    print(path)

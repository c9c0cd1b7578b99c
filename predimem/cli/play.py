"""`predimem play`: one episode, filmed."""

from __future__ import annotations

from contextlib import closing
from dataclasses import fields, replace
from pathlib import Path
from typing import Annotated

import typer

from predimem.cli.agents import played_by
from predimem.cli.options import Weights

FILM_PX = 256


def play_one(
    task: Annotated[str, typer.Option(help="Task; of the arena: number, name, Gymnasium id, or file (.py).")],
    seed: Annotated[int, typer.Option(help="Seed of the episode.")] = 0,
    agent: Annotated[str, typer.Option(help="`oracle`, `script`, `random`, or an agent of --config.")] = "oracle",
    image_px: Annotated[int | None, typer.Option(help="arena: width and height of the images; default: 256.")] = None,
    out: Annotated[Path, typer.Option(help="The video (.mp4), or the folder for it.")] = Path("runs/play"),
    config: Annotated[Path | None, typer.Option(help="Agents and how they are played, see configs/eval/.")] = None,
    benchmark: Annotated[
        str | None, typer.Option("--benchmark", "--suite", help="`arena` (default), `mikasa`, or your own file (.py).")
    ] = None,
    weights: Weights = None,
) -> None:
    """Play one episode and film it: both cameras, the subtask, the stages, the outcome."""
    from predimem.envs.benchmark import load_benchmark
    from predimem.evaluation.run.benchmark_player import BenchmarkPlayer
    from predimem.evaluation.run.config import evaluation_settings
    from predimem.evaluation.run.film import film_episode
    from predimem.evaluation.run.names import task_files

    chosen = benchmark or ("arena" if config is None else None)
    if chosen is not None and "image_px" in {option.name for option in fields(load_benchmark(chosen).options)}:
        image_px = image_px or FILM_PX
    given = {"benchmark": chosen, "play.environment.image_px": image_px, "play.weights": weights}
    settings = evaluation_settings(config, given)
    played = load_benchmark(settings.benchmark)
    play = played_by(settings, [agent])
    name, files = played.task_name(task), task_files(settings.benchmark, [task])
    played.prepare(images=True)
    path = out if out.suffix == ".mp4" else out / f"{name}-{agent}-seed{seed}.mp4"
    with closing(BenchmarkPlayer(replace(play, task_files=files))) as player:
        result = film_episode(player, name, agent, seed, path)
    stages = f"{result.stages_passed} of {result.stages_total} stages"
    reason = f" ({result.message.splitlines()[0]})" if result.message else ""
    print(f"{name}, {agent}, seed {seed}: {result.status} after {result.steps} steps, {stages}{reason}")
    if not path.is_file():
        raise SystemExit(1)
    print(path)

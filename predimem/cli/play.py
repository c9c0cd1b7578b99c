"""`predimem play`: plays one episode and films it."""

from __future__ import annotations

from contextlib import closing
from dataclasses import fields, replace
from pathlib import Path
from typing import Annotated

import typer

from predimem.cli.agents import played_by, warn_of_unseen
from predimem.cli.options import Weights
from predimem.core.files import check_file, check_folder

FILM_PX = 256


def play_one(
    task: Annotated[str, typer.Option(help="The task; in the arena a number, a name, a Gymnasium id or a file (.py).")],
    seed: Annotated[int, typer.Option(help="Seed of the episode.")] = 0,
    agent: Annotated[
        str, typer.Option(help="Who plays: `oracle`, `script`, `random`, or an agent of --config.")
    ] = "oracle",
    image_px: Annotated[
        int | None, typer.Option(help="Width and height of the images of the arena; default: 256.")
    ] = None,
    out: Annotated[Path, typer.Option(help="File for the video (.mp4), or the folder for it.")] = Path("runs/play"),
    config: Annotated[
        Path | None, typer.Option(help="YAML file with agents and how they are played, see configs/eval/.")
    ] = None,
    benchmark: Annotated[
        str | None,
        typer.Option(
            "--benchmark", "--suite", help="The benchmark: `arena` (default), `mikasa`, or the Python file of your own."
        ),
    ] = None,
    weights: Weights = None,
) -> None:
    """Play one episode and film it: the video shows the cameras, the subtask, the stages and the outcome."""
    (check_file if out.suffix == ".mp4" else check_folder)(out)
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
    warn_of_unseen(settings, [task], play)
    played.prepare(images=True)
    path = out if out.suffix == ".mp4" else out / f"{name}-{agent}-seed{seed}.mp4"
    with closing(BenchmarkPlayer(replace(play, task_files=files))) as player:
        player.load([agent])
        result = film_episode(player, name, agent, seed, path)
    stages = f"{result.stages_passed} of {result.stages_total} stages"
    reason = f" ({result.message.splitlines()[0]})" if result.message else ""
    print(f"{name}, {agent}, seed {seed}: {result.status} after {result.steps} steps, {stages}{reason}")
    if path.is_file():
        print(path)
    if result.status == "error":
        raise SystemExit(1)

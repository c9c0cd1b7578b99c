"""`predimem demo`: two tasks that need memory, each played with and without it on the same seeds."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from predimem.cli.evaluation import play_settings
from predimem.cli.options import Out, Workers, check_out

EVERY_LOOK = 10  # control steps: as often as the planner of the arena is asked, so that filming renders nothing more


@dataclass(frozen=True)
class Part:
    """What one part of the demo plays; the first of the two agents has the memory.

    every_steps, fps: how it is filmed
    rendering: the meshes, in a benchmark that lets one choose
    """

    name: str
    benchmark: str
    tasks: tuple[str, ...]
    agents: tuple[str, str]
    seed_start: int
    every_steps: int
    fps: float
    rendering: str | None = None


DRAWERS = Part(
    name="drawers",
    benchmark="arena",
    tasks=("4",),
    agents=("predimem-skills", "no-keyframes-skills"),
    seed_start=900_001,  # the first evaluation seed whose cookies lie in the drawer that is searched last
    every_steps=EVERY_LOOK,
    fps=12.0,
)
COLOURS = Part(
    name="remember-color",
    benchmark="mikasa",
    tasks=("RememberColor3-VLA-v0", "RememberColor5-VLA-v0", "RememberColor9-VLA-v0"),
    agents=("predimem", "no-keyframes"),
    seed_start=900_000,
    every_steps=1,
    fps=4.0,
    rendering="fast",
)


def demo(
    out: Out = Path("runs/demo"),
    episodes: Annotated[int, typer.Option(help="How many episodes to play of each task with each agent.")] = 1,
    workers: Workers = 2,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Throw away what the folder holds, and begin anew.")
    ] = False,
) -> None:
    """See on a laptop what memory is worth: the shipped models search drawers and remember colours, with keyframes and
    without, side by side in one video.

    After Ctrl-C the same command goes on where it was interrupted. What is finished is not played again; what crashed
    is.
    """
    check_out(out)
    print(f"\nSee {play_demo(DRAWERS, COLOURS, out, episodes, workers, overwrite)}")


def play_demo(drawers: Part, colours: Part, out: Path, episodes: int, workers: int, overwrite: bool) -> Path:
    """Play both parts, each in a folder of its own in `out`, and return the page about them.

    Raises EvaluationError where `out` or one of the folders holds something else, and `overwrite` is not set.
    """
    from predimem.evaluation.report.demo import write_demo
    from predimem.evaluation.report.video import Film
    from predimem.evaluation.run.config import evaluation_settings
    from predimem.evaluation.run.journal import clear_run, refuse_run

    if not overwrite:
        refuse_run(out)
    results = {}
    for part in (drawers, colours):
        given = {"benchmark": part.benchmark, "tasks": part.tasks, "agents": part.agents, "videos": 1}
        given |= {"episodes": episodes, "seed_start": part.seed_start, "workers": workers, "out": str(out / part.name)}
        given["play.environment.rendering"] = part.rendering
        film = Film(part.every_steps, part.fps, narrow=True)
        results[part.name] = play_settings(evaluation_settings(None, given), overwrite, True, film)
    if overwrite:
        clear_run(out)  # an evaluation in this very folder, as earlier versions left one
    print("\nputting the videos side by side ...")
    return write_demo(results[drawers.name], results[colours.name], out)

"""Options that several commands share."""

from pathlib import Path
from typing import Annotated

import typer

Out = Annotated[Path, typer.Option(help="Folder for everything that the command writes.")]
Workers = Annotated[int, typer.Option(help="Processes; each builds its own simulator and models.")]
Weights = Annotated[str | None, typer.Option(help="Folder with planner/, actor/, ...; default: shipped.")]
BenchmarkOption = Annotated[
    str | None,
    typer.Option("--benchmark", "--suite", help="`mikasa` (default), `arena`, or the Python file of your own."),
]
Agents = Annotated[str, typer.Option("--agent", "--agents", help="Agents, comma-separated.")]
Tasks = Annotated[str, typer.Option(help="Task ids, comma-separated.")]
Episodes = Annotated[Path, typer.Option(help="Folder of episodes.")]
EpisodeFile = Annotated[Path, typer.Argument(help="Episode, such as .../seed0000001000.h5.")]


def split(text: str) -> list[str]:
    """The parts of a comma-separated option."""
    return [part.strip() for part in text.split(",") if part.strip()]

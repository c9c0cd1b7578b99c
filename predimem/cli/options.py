"""Options that several commands share."""

from pathlib import Path
from typing import Annotated

import typer

from predimem.core.files import check_folder


def check_out(out: str | Path | None, config: Path | None = None) -> None:
    """Raises OSError unless the folder for what a command writes can be written to: the option's, else the config's.

    Called before anything heavy is imported. Raises ConfigError for a config that cannot be read.
    """
    if out is None and config is not None:
        from predimem.core.config import read_yaml

        data = read_yaml(config)
        out = data.get("out") if isinstance(data, dict) else None
    if isinstance(out, str | Path):
        check_folder(out)


def _writable(out: Path) -> Path:
    check_folder(out)
    return out


Out = Annotated[Path, typer.Option(help="Folder for everything that the command writes.", callback=_writable)]
Workers = Annotated[
    int, typer.Option(help="How many processes work side by side; each has its own simulator and models.")
]
Weights = Annotated[
    str | None, typer.Option(help="Folder with the weights (planner/, actor/, ...); default: the shipped weights.")
]
BenchmarkOption = Annotated[
    str | None,
    typer.Option(
        "--benchmark", "--suite", help="The benchmark: `mikasa` (default), `arena`, or the Python file of your own."
    ),
]
Agents = Annotated[str, typer.Option("--agent", "--agents", help="Names of agents, comma-separated.")]
Tasks = Annotated[str, typer.Option(help="Names of tasks, comma-separated.")]
Episodes = Annotated[Path, typer.Option(help="Folder with the episodes.")]
EpisodeFile = Annotated[Path, typer.Argument(help="The file of an episode, such as .../seed0000001000.h5.")]


def split(text: str) -> list[str]:
    """The parts of a comma-separated option."""
    return [part.strip() for part in text.split(",") if part.strip()]

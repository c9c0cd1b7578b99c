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

        out = read_yaml(config).get("out")
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
        "--benchmark",
        "--suite",
        help="The benchmark: `mikasa` (default), `arena`, `robomme`, `base`, `interference`, or the Python file of "
        "your own.",
    ),
]
Agents = Annotated[str, typer.Option("--agent", "--agents", help="Names of agents, comma-separated.")]
Tasks = Annotated[str, typer.Option(help="Names of tasks, comma-separated.")]
Episodes = Annotated[Path, typer.Option(help="Folder with the episodes.")]
TcpEntries = Annotated[
    list[str] | None,
    typer.Option(
        help="Find keyframes by the arm's motion: where in the state the position of its TCP in m is, such as "
        "0,1,2. Once for each arm, with a --gripper each."
    ),
]
GripperEntries = Annotated[
    list[int] | None, typer.Option(help="Where in the state the opening of the arm's gripper in m is, such as 6.")
]
ClosedBelow = Annotated[
    float, typer.Option(help="The gripper counts as closed below this opening: what it holds at its widest.")
]
AnswerSeconds = Annotated[
    float | None, typer.Option(help="Seconds that each answer of the model may take; default: 120.")
]
AnswerTokens = Annotated[
    int | None, typer.Option(help="Tokens that an answer may have; default: as many as the server allows.")
]
EpisodeFile = Annotated[Path, typer.Argument(help="The file of an episode, such as .../seed0000001000.h5.")]


def split(text: str) -> list[str]:
    """The parts of a comma-separated option."""
    return [part.strip() for part in text.split(",") if part.strip()]


def numbers(option: str, text: str) -> list[int]:
    """Raises ValueError, which names the option, for anything but whole numbers."""
    try:
        return [int(part) for part in split(text)]
    except ValueError:
        raise ValueError(f"{option}: expected whole numbers with commas between them, got {text!r}") from None

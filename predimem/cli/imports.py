"""`predimem import`: the data sets of others as episodes, and the weights of others as an actor."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from predimem.cli.actor_weights import import_weights
from predimem.cli.options import ClosedBelow, GripperEntries, Out, TcpEntries, split

app = typer.Typer(no_args_is_help=True, help="Read the data sets of others as episodes, and their weights.")
app.command("actor")(import_weights)

Data = Annotated[Path, typer.Argument(help="The folder of the data set.", exists=True, file_okay=False)]
Processes = Annotated[int, typer.Option("--workers", help="How many processes read episodes side by side.", min=1)]
Retry = Annotated[bool, typer.Option("--retry-errors", help="Read those episodes again that ended in an error.")]


@app.command("robomemarena")
def import_hdf5(
    data: Annotated[Path, typer.Option(help="Folder with <category>/<task>_dataset/subtask_data/*.hdf5.")],
    out: Out,
    instructions: Annotated[
        Path | None,
        typer.Option(
            help="CSV file with the columns task, instruction and, where seeds differ, seed: what the robot was told. "
            "Default: as our task of that number says it.",
            exists=True,
            dir_okay=False,
        ),
    ] = None,
    workers: Processes = 1,
    retry_errors: Retry = False,
) -> None:
    """Read RoboMemArena's HDF5 files, released or exported, as episodes.

    After Ctrl-C the same command goes on where it was interrupted.
    """
    from datagen.imports.robomemarena_command import import_in_workers

    print(import_in_workers(data, out, instructions, workers, retry_errors))


@app.command("lerobot")
def import_from_lerobot(
    data: Data,
    out: Out,
    subtasks: Annotated[
        str,
        typer.Option(
            help="Where subtasks come from: `columns` (of the data set), `instruction` (one for the whole episode), or "
            "a CSV file with the columns episode, start, end, label."
        ),
    ] = "columns",
    cameras: Annotated[str, typer.Option(help="Names of cameras, comma-separated; default: all.")] = "",
    max_px: Annotated[
        int | None, typer.Option(help="Scale larger images down so that their longer side has this many pixels.", min=8)
    ] = None,
    task: Annotated[
        str | None, typer.Option(help="What to call the task; default: as in our own exports, else as the folder.")
    ] = None,
    first_number: Annotated[int, typer.Option(help="The number of the first episode, from 1000 to 99999.")] = 1000,
    tcp: TcpEntries = None,
    gripper: GripperEntries = None,
    closed_below_m: ClosedBelow = 0.075,
    workers: Processes = 1,
    retry_errors: Retry = False,
) -> None:
    """Read a LeRobotDataset, version 3.0, of any robot as episodes.

    After Ctrl-C the same command goes on where it was interrupted.
    """
    from datagen.imports.arms import arms_of
    from datagen.imports.command import import_lerobot

    arms = arms_of(tcp or [], gripper or [])
    chosen = {"cameras": split(cameras), "max_px": max_px, "task": task, "first_seed": first_number}
    print(import_lerobot(data, out, subtasks, chosen, arms, closed_below_m, workers, retry_errors))


@app.command("mikasa")
def import_from_mikasa(
    data: Data,
    out: Out,
    subtasks: Annotated[
        str,
        typer.Option(
            help="Where subtasks come from: `instruction` (one for the whole episode), or a CSV file with the columns "
            "task, episode, start, end, label."
        ),
    ] = "instruction",
    workers: Processes = 1,
    retry_errors: Retry = False,
) -> None:
    """Read MIKASA-Robo-VLA's released demonstrations, LeRobot or RLDS, as episodes: all tasks below the folder.

    After Ctrl-C the same command goes on where it was interrupted.
    """
    from datagen.imports.command import import_mikasa

    print(import_mikasa(data, out, subtasks, workers, retry_errors))


@app.command("robomme")
def import_robomme_hdf5(
    data: Annotated[Path, typer.Argument(help="A file record_dataset_<task>.h5 of RoboMME, or a folder with some.")],
    out: Out,
    image_px: Annotated[
        int, typer.Option(help="Scale images to this width and height; 0: leave them as they are.")
    ] = 128,
    image_every: Annotated[int, typer.Option(help="Take one image of so many control steps.")] = 5,
    workers: Processes = 1,
    retry_errors: Retry = False,
) -> None:
    """Read RoboMME's released HDF5 files as episodes.

    After Ctrl-C the same command goes on where it was interrupted.
    """
    if image_px < 0 or image_every < 1:
        raise ValueError(f"expected image_px >= 0 and image_every >= 1, got {image_px} and {image_every}")
    from datagen.imports.robomme import import_robomme
    from datagen.report import summary

    outcomes = import_robomme(data, out, image_px or None, image_every, workers, retry_errors=retry_errors)
    print(summary(outcomes, out))

"""`predimem export` and `predimem import`: exchange episodes, and the actor's weights, with other tools."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from predimem.cli import actor_weights
from predimem.cli.options import Episodes, Out
from predimem.core.files import check_file

export_app = typer.Typer(
    no_args_is_help=True, help="Write episodes, and the actor's weights, in the formats of others."
)
import_app = typer.Typer(no_args_is_help=True, help="Read the data sets of others as episodes, and their weights.")
export_app.command("actor")(actor_weights.export_weights)
import_app.command("actor")(actor_weights.import_weights)


@export_app.command("sft")
def export_sft(
    episodes: Episodes,
    out: Out,
    config: Annotated[
        Path | None,
        typer.Option(help="YAML file that says how to train, see configs/planner/; default: as in the paper."),
    ] = None,
    images: Annotated[
        str | None, typer.Option(help="How images are written: `png` (files) or `base64`; default: as in the config.")
    ] = None,
    samples: Annotated[
        int | None, typer.Option(help="How many training examples to write; default: as in the config.")
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help="Seed with which examples are drawn; default: as in the config.")
    ] = None,
) -> None:
    """Write the JSONL that ms-swift trains S2 with, as `predimem train planner` makes it (RoboMemArena, §8).

    After Ctrl-C the same command goes on where it was interrupted.
    """
    from predimem.core.config import load_config, read_yaml
    from predimem.core.episodes import list_episodes, load_episodes
    from predimem.core.progress import stage

    if (out / "train.jsonl").exists():
        raise ValueError(f"{out} holds a train.jsonl already: choose another --out")
    list_episodes(episodes)
    if config is not None:
        read_yaml(config)
    with stage("loading PyTorch"):
        from planner.prompt import PromptConfig
        from planner.train import TrainConfig
        from planner.training_data import write_training_data
    loaded = load_episodes(episodes)
    if config is not None:
        recipe = load_config(TrainConfig, config)
    else:
        recipe = TrainConfig(prompt=PromptConfig(cameras=tuple(loaded[0].images)))
    changes = {"image_format": images, "samples": samples}
    dataset = replace(recipe.dataset, **{name: value for name, value in changes.items() if value is not None})
    seed = recipe.seed if seed is None else seed
    print(write_training_data(out, loaded, recipe.prompt, recipe.memory, dataset, seed))


@export_app.command("robomemarena")
def export_hdf5(
    episodes: Episodes,
    out: Out,
    image_px: Annotated[
        int | None,
        typer.Option(help="Scale images to this width and height; RoboMemArena's builder takes 256 only."),
    ] = None,
) -> None:
    """Write RoboMemArena's HDF5 files, one for each subtask.

    After Ctrl-C the same command goes on where it was interrupted.
    """
    from datagen.export.robomemarena import BUILDER_PX, export_robomemarena

    files = export_robomemarena(episodes, out, image_px)
    roots = sorted({str(file.parents[2]) for file in files})
    print(f"{len(files)} files in {out}")
    print(f"ROBOMEMARENA_DATA_ROOT is the folder of one category: {', '.join(roots)}")
    if image_px not in (None, BUILDER_PX):
        print(f"RoboMemArena's builder refuses images of {image_px} px: it takes {BUILDER_PX} only", file=sys.stderr)


@export_app.command("lerobot")
def export_to_lerobot(
    episodes: Episodes,
    out: Out,
    robot: Annotated[str, typer.Option(help="The `robot_type` that LeRobot reads.")] = "panda",
    language: Annotated[
        bool,
        typer.Option("--language", help="Write subtasks as LeRobot 0.6 wants them, too; LeRobot 0.4 cannot read that."),
    ] = False,
) -> None:
    """Write a LeRobotDataset, version 3.0: parquet, MP4 and tables.

    After Ctrl-C the same command goes on where it was interrupted.
    """
    from datagen.export.lerobot import export_lerobot

    print(f"{export_lerobot(episodes, out, robot, language)} episodes in {out}")


@export_app.command("rerun")
def export_to_rerun(
    episode: Annotated[
        str, typer.Argument(help="The file of an episode; with --state-dir the id of a served episode.")
    ],
    out: Annotated[Path, typer.Option(help="The file to write, such as episode.rrd.")],
    state_dir: Annotated[Path | None, typer.Option(help="Folder in which `predimem serve` keeps episodes.")] = None,
    control_hz: Annotated[float, typer.Option(help="How many control steps a served episode has in a second.")] = 20.0,
) -> None:
    """Write one episode for the Rerun viewer, which shows images, subtasks, keyframes and numbers over time."""
    check_file(out)
    from predimem.serving.rerun import recording_of_episode, recording_of_kept, write_rerun

    if state_dir is None:
        from predimem.core.episodes import load_episode

        recording = recording_of_episode(load_episode(episode))
    else:
        recording = recording_of_kept(state_dir, episode, control_hz)
    print(f"{write_rerun(recording, out)}: open it with `rerun {out}`")


@import_app.command("robomemarena")
def import_hdf5(
    data: Annotated[Path, typer.Option(help="Folder with <category>/<task>_dataset/subtask_data/*.hdf5.")],
    out: Out,
) -> None:
    """Read RoboMemArena's HDF5 files, released or exported, as episodes.

    After Ctrl-C the same command goes on where it was interrupted.
    """
    from datagen.export.robomemarena_import import import_robomemarena

    print(f"{import_robomemarena(data, out)} episodes in {out}")

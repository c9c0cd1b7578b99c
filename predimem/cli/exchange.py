"""`predimem export` and `predimem import`: episodes in the formats of other tools."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from predimem.cli.options import Episodes, Out

export_app = typer.Typer(no_args_is_help=True, help="Write episodes in the formats of other tools.")
import_app = typer.Typer(no_args_is_help=True, help="Read data sets of others as episodes.")


@export_app.command("sft")
def export_sft(
    episodes: Episodes,
    out: Out,
    config: Annotated[Path | None, typer.Option(help="Recipe, see configs/planner/; default: the paper's.")] = None,
    images: Annotated[str | None, typer.Option(help="`png` (files) or `base64`; default: the config's.")] = None,
    samples: Annotated[int | None, typer.Option(help="Lines; default: the config's.")] = None,
    seed: Annotated[int | None, typer.Option(help="Of the drawing; default: the config's.")] = None,
) -> None:
    """The JSONL that ms-swift trains S2 with, as `predimem train planner` makes it (RoboMemArena, §8)."""
    from planner.dataset import write_training_data
    from planner.prompt import PromptConfig
    from planner.train import TrainConfig
    from predimem.core.config import load_config
    from predimem.core.episodes import load_episodes

    if (out / "train.jsonl").exists():
        raise ValueError(f"{out} holds a train.jsonl already: choose another --out")
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
def export_hdf5(episodes: Episodes, out: Out) -> None:
    """RoboMemArena's HDF5 files, one for each subtask. Ctrl-C, then again: goes on."""
    from datagen.export.robomemarena import export_robomemarena

    print(f"{export_robomemarena(episodes, out)} files in {out}")


@export_app.command("lerobot")
def export_to_lerobot(
    episodes: Episodes,
    out: Out,
    robot: Annotated[str, typer.Option(help="LeRobot's `robot_type`.")] = "panda",
) -> None:
    """A LeRobotDataset, v3.0: parquet, MP4 and tables. Ctrl-C, then again: goes on."""
    from datagen.export.lerobot import export_lerobot

    print(f"{export_lerobot(episodes, out, robot)} episodes in {out}")


@export_app.command("rerun")
def export_to_rerun(
    episode: Annotated[str, typer.Argument(help="An episode's file; with --state-dir the id of a served episode.")],
    out: Annotated[Path, typer.Option(help="The file to write, such as episode.rrd.")],
    state_dir: Annotated[Path | None, typer.Option(help="Folder in which `predimem serve` keeps episodes.")] = None,
    control_hz: Annotated[float, typer.Option(help="Control steps a second of a served episode.")] = 20.0,
) -> None:
    """One episode for the Rerun viewer: images, subtasks, keyframes and numbers over time."""
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
    """RoboMemArena's HDF5 files, released or exported, as episodes. Ctrl-C, then again: goes on."""
    from datagen.export.robomemarena_import import import_robomemarena

    print(f"{import_robomemarena(data, out)} episodes in {out}")

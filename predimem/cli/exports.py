"""`predimem export`: episodes, results, and the actor's weights in the formats of other tools."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from predimem.cli.actor_weights import export_weights
from predimem.cli.options import Episodes, Out
from predimem.core.files import check_file

app = typer.Typer(no_args_is_help=True, help="Write episodes, and the actor's weights, in the formats of others.")
app.command("actor")(export_weights)


@app.command("sft")
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
    from predimem.core.episode_folder import list_episodes, load_episodes
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


@app.command("robomemarena")
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


@app.command("lerobot")
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


@app.command("rerun")
def export_to_rerun(
    episode: Annotated[
        str, typer.Argument(help="The file of an episode; with --store or --state-dir the id of a served episode.")
    ],
    out: Annotated[Path, typer.Option(help="The file to write, such as episode.rrd.")],
    state_dir: Annotated[Path | None, typer.Option(help="Folder in which `predimem serve` keeps episodes.")] = None,
    store: Annotated[
        str | None, typer.Option(help="The memory store in place of it: a folder, or postgresql://...")
    ] = None,
    control_hz: Annotated[float, typer.Option(help="How many control steps a served episode has in a second.")] = 20.0,
) -> None:
    """Write one episode for the Rerun viewer, which shows images, subtasks, keyframes and numbers over time."""
    check_file(out)
    from predimem.serving.rerun import recording_of_episode, recording_of_kept, write_rerun

    place = store or state_dir
    if place is None:
        from predimem.core.episode_reader import load_episode

        recording = recording_of_episode(load_episode(episode))
    else:
        recording = recording_of_kept(place, episode, control_hz)
    print(f"{write_rerun(recording, out)}: open it with `rerun {out}`")


@app.command("leaderboard")
def export_to_leaderboard(
    results: Annotated[
        Path, typer.Argument(help="The results.json or compact.json of `predimem eval`.", exists=True, dir_okay=False)
    ],
    out: Annotated[Path, typer.Option(help="The file to write, such as leaderboard.json.")],
    model: Annotated[str, typer.Option(help="The method's key in the leaderboard, as in BibTeX: doe26predimem.")],
    by: Annotated[str, typer.Option(help="Who vouches for the figures: @ and a GitHub name.")],
    agent: Annotated[str, typer.Option(help="Which agent of the results.")] = "predimem",
    name: Annotated[str, typer.Option(help="The name that the leaderboard shows.")] = "PrediMem",
    into: Annotated[
        Path | None, typer.Option(help="A leaderboard.json whose other entries are kept; it is not changed itself.")
    ] = None,
    paper: Annotated[str | None, typer.Option(help="URL of the paper with these figures.")] = None,
    params: Annotated[str | None, typer.Option(help="How large the model is, such as 2.4M.")] = None,
    notes: Annotated[str, typer.Option(help="What else has to be known of the figures.")] = "",
    date: Annotated[str, typer.Option(help="The day of the entry, YYYY-MM-DD; default: today.")] = "",
) -> None:
    """Write results as an entry of the leaderboard of vla-evaluation-harness."""
    check_file(out)
    from predimem.core.files import write_text
    from predimem.evaluation.report.leaderboard import Submission, leaderboard, leaderboard_entry
    from predimem.evaluation.run.config import read_results

    submission = Submission(model, name, by, date, paper, params, notes)
    entry = leaderboard_entry(read_results(results), agent, submission)
    try:
        before = None if into is None else json.loads(into.read_text())
        whole = leaderboard([entry], before)
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{into} is no leaderboard.json: {error}") from error
    write_text(out, json.dumps(whole, indent=2, ensure_ascii=False) + "\n")
    score = "not ranked" if entry["overall_score"] is None else f"{entry['overall_score']} %"
    print(f"{out}: {name}, {entry['benchmark']}, {len(entry['task_scores'])} tasks, {score}")
    if entry["overall_score"] is None:
        print("the leaderboard ranks only who played exactly the tasks of its standard protocol", file=sys.stderr)

"""`predimem data`: shows statistics, a plot and a video of episodes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from predimem.cli.options import EpisodeFile, Episodes
from predimem.core.files import check_file, write_text

app = typer.Typer(no_args_is_help=True, help="Look at episodes: statistics, plots and videos.")


@app.command("stats")
def data_stats(
    episodes: Episodes,
    out: Annotated[
        Path | None, typer.Option(help="File for the statistics (.md or .json); default: print Markdown.")
    ] = None,
    verify: Annotated[bool, typer.Option(help="Compare every file with its checksum, which takes longer.")] = True,
) -> None:
    """Print yield, lengths, keyframes, retries and sizes of a folder of episodes, beside those of RoboMemArena."""
    from datagen.inspect.statistics import data_statistics
    from datagen.inspect.statistics_page import page

    if out is not None and out.suffix not in (".md", ".json"):
        raise ValueError(f"--out is a file that ends in .md or .json, got {out}")
    if out is not None:
        check_file(out)
    statistics = data_statistics(episodes, verify)
    text = json.dumps(statistics, indent=1) + "\n" if out and out.suffix == ".json" else page(statistics)
    if out is None:
        print(text, end="")
    else:
        write_text(out, text)
        print(out)


@app.command("plot")
def data_plot(
    episode: EpisodeFile,
    out: Annotated[Path, typer.Option(help="File for the image (.png, .svg or .pdf).")],
) -> None:
    """Plot an episode of the arena: speed, gripper, keyframes and subtasks over time, with images."""
    check_file(out)
    from datagen.inspect.plots import keyframe_config, plot_episode
    from predimem.core.episode_reader import load_episode

    plot_episode(load_episode(episode), out, keyframe_config(episode))
    print(out)


@app.command("show")
def data_show(
    episode: EpisodeFile,
    out: Annotated[Path, typer.Option(help="File for the video (.mp4).")],
    speed: Annotated[float, typer.Option(help="How many times as fast as the robot the video runs.")] = 2.0,
) -> None:
    """Make a video of an episode, with all cameras, the subtask and a flash at each keyframe."""
    check_file(out)
    from datagen.inspect.show import show_episode
    from predimem.core.episode_reader import load_episode

    show_episode(load_episode(episode), out, speed)
    print(out)

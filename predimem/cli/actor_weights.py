"""`predimem import actor` and `predimem export actor`: weights of π0.5 from and for openpi and LeRobot."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from predimem.cli.options import Out, numbers, split


def import_weights(
    source: Annotated[Path, typer.Option("--from", help="Folder of a PyTorch checkpoint of openpi or LeRobot (pi05).")],
    out: Out,
    config: Annotated[
        Path | None,
        typer.Option(
            help="Recipe whose `actor` part describes the robot, such as configs/actor/pi05_dual_arm.yaml; the options "
            "below override it."
        ),
    ] = None,
    state_dim: Annotated[int | None, typer.Option(help="How many numbers the robot's state has.")] = None,
    action_dim: Annotated[int | None, typer.Option(help="How many numbers an action of the robot has.")] = None,
    cameras: Annotated[
        str | None, typer.Option(help="Names of your cameras in the checkpoint's order, comma-separated.")
    ] = None,
    camera_shape: Annotated[str | None, typer.Option(help="Height and width of the images, such as 480,640.")] = None,
    horizon: Annotated[
        int | None, typer.Option(help="How many actions a chunk has, where the checkpoint does not say it.")
    ] = None,
    tokenizer: Annotated[
        Path | None, typer.Option(help="PaliGemma's sentencepiece model; default: the one in the checkpoint's folder.")
    ] = None,
    asset: Annotated[
        str | None, typer.Option(help="The folder below `assets` with the statistics, where there are several.")
    ] = None,
) -> None:
    """Make a weights folder of a π0.5 checkpoint: to serve it, or to train it on (`continue_from`)."""
    from predimem.core.progress import stage

    robot = {} if config is None else _robot_of(config)
    given: dict[str, Any] = {"state_dim": state_dim, "action_dim": action_dim, "action_horizon": horizon}
    given |= {"cameras": None if cameras is None else split(cameras)}
    given |= {"camera_shape": None if camera_shape is None else numbers("--camera-shape", camera_shape)}
    robot |= {name: value for name, value in given.items() if value is not None}
    with stage("loading PyTorch"):
        from actor.exchange.convert import import_actor

    print(import_actor(source, out, robot, tokenizer, asset))
    print(f"weights in {out}: predimem serve --actor {out} --planner instruction")


def export_weights(
    actor: Annotated[Path, typer.Option("--actor", help="Folder of the actor's weights.")],
    out: Out,
    to: Annotated[str, typer.Option("--format", help="`openpi` or `lerobot`.")],
    asset: Annotated[str, typer.Option(help="With openpi: the folder below `assets` for the statistics.")] = "robot",
) -> None:
    """Write a π0.5 actor as a PyTorch checkpoint of openpi or LeRobot."""
    if to not in ("openpi", "lerobot"):
        raise ValueError(f"--format: expected openpi or lerobot, got {to!r}")
    from predimem.core.progress import stage

    with stage("loading PyTorch"):
        from actor.exchange.convert import export_actor

    print(export_actor(actor, out, to, asset))
    print(f"checkpoint in {out}")


def _robot_of(recipe: Path) -> dict[str, Any]:
    """The `actor` part of a recipe without the model, whose sizes the checkpoint has."""
    from predimem.core.config import ConfigError, read_yaml

    actor = read_yaml(recipe).get("actor")
    if not isinstance(actor, dict):
        raise ConfigError(f"{recipe}: expected a recipe with a part `actor`, such as configs/actor/pi05_dual_arm.yaml")
    return {name: value for name, value in actor.items() if name not in ("model", "tokenizer")}

"""`predimem annotate`: names the subtasks of episodes that came without."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from predimem.cli.options import (
    AnswerSeconds,
    AnswerTokens,
    ClosedBelow,
    Episodes,
    GripperEntries,
    Out,
    TcpEntries,
)


def annotate_episodes(
    episodes: Episodes,
    out: Out,
    model: Annotated[str, typer.Option(help="The name of the model at the endpoint.")],
    endpoint: Annotated[
        str | None,
        typer.Option(help="An OpenAI-compatible address, such as http://localhost:8000/v1; default: OpenAI's own."),
    ] = None,
    labels: Annotated[
        Path | None,
        typer.Option(help="Text file with the labels that may be used, one a line; default: any.", exists=True),
    ] = None,
    camera: Annotated[str, typer.Option(help="Whose images the model gets; default: the first camera's.")] = "",
    images: Annotated[int, typer.Option(help="How many images of an episode the model gets at most.", min=2)] = 32,
    max_px: Annotated[int, typer.Option(help="The longer side of an image that the model gets.", min=8)] = 336,
    tcp: TcpEntries = None,
    gripper: GripperEntries = None,
    closed_below_m: ClosedBelow = 0.075,
    again: Annotated[bool, typer.Option("--again", help="Also episodes that have several subtasks already.")] = False,
    timeout: AnswerSeconds = None,
    max_tokens: AnswerTokens = None,
    workers: Annotated[int, typer.Option(help="How many episodes are asked about side by side.", min=1)] = 1,
    retry_errors: Annotated[
        bool, typer.Option("--retry-errors", help="Ask again about episodes that ended in an error.")
    ] = False,
) -> None:
    """Write episodes once more, with the subtasks that a vision-language model sees in them, and with keyframes.

    After Ctrl-C the same command goes on where it was interrupted.
    """
    from datagen.annotate.annotate import ViewConfig
    from datagen.annotate.command import AnnotateConfig, annotate, read_labels
    from datagen.decompose.config import VlmConfig
    from datagen.imports.arms import arms_of
    from datagen.keyframes import KeyframeConfig

    limits: dict[str, Any] = {"timeout_s": timeout, "max_tokens": max_tokens}
    config = AnnotateConfig(
        vlm=VlmConfig(model, endpoint, **{name: limit for name, limit in limits.items() if limit is not None}),
        views=ViewConfig(camera, images, max_px),
        arms=arms_of(tcp or [], gripper or []),
        motion=KeyframeConfig(gripper_closed_below_m=closed_below_m),
        labels=read_labels(labels),
    )
    print(annotate(episodes, out, config, workers, again, retry_errors))

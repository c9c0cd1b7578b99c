"""The labels of an episode: what the actor should have done at each step for each subtask."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from actor.hindsight import HindsightConfig
from predimem.core.episodes import Alternatives, Episode


def labels_of(
    episode: Episode,
    horizon: int,
    cameras: Sequence[str],
    hindsight: HindsightConfig | None = None,
    base_m: Sequence[float] = (0.0, 0.0, 0.0),
) -> Alternatives:
    """The episode's alternatives; without any, what was done, as one alternative per subtask. A conditioning video, in
    which somebody else acts, has none. Chunks of what was done are views of the actions: written out they would take
    10 MB for each episode of 1,000 steps.

    hindsight: where the targets of what was done come from; None: it has no targets.
    base_m: where the robot's base is in the frame of the state; targets are in the base's.
    """
    if episode.alternatives is not None:
        chunks = episode.alternatives.chunks
        if chunks.shape[2] < horizon:
            raise ValueError(
                f"{episode.task} seed {episode.seed} has chunks of {chunks.shape[2]} steps, the config's "
                f"action_horizon is {horizon}: it must not be longer"
            )
        return dataclasses.replace(episode.alternatives, chunks=chunks[:, :, :horizon])
    own = [span for span in episode.subtasks if span.start >= episode.video_steps]
    subtasks = tuple(dict.fromkeys(span.label for span in own))
    steps, width = len(episode), episode.actions.shape[-1]
    valid = np.zeros((steps, len(subtasks)), bool)
    for span in own:
        valid[span.start : span.end, subtasks.index(span.label)] = True
    ahead = np.pad(episode.actions, ((0, horizon - 1), (0, 0)), mode="edge")  # the last action repeats at the end
    windows = np.lib.stride_tricks.sliding_window_view(ahead, horizon, axis=0).transpose(0, 2, 1)
    chunks = np.broadcast_to(windows[:, None], (steps, len(subtasks), horizon, width))
    unknown = np.float32(np.nan)
    if hindsight is None:
        targets_m = np.broadcast_to(unknown, (steps, len(subtasks), 3))
        pixels = np.broadcast_to(unknown, (steps, len(subtasks), len(cameras), 2))
        return Alternatives(subtasks, chunks, valid, targets_m, pixels)
    targets_m = np.full((steps, len(subtasks), 3), unknown)
    pixels = np.full((steps, len(subtasks), len(cameras), 2), unknown)
    for span in own:
        where = slice(span.start, span.end), subtasks.index(span.label)
        target_m = hindsight.target_m(episode, span)
        targets_m[where] = target_m - np.array(base_m, np.float32)
        pixels[where] = [hindsight.pixel(camera, target_m) for camera in cameras]
    return Alternatives(subtasks, chunks, valid, targets_m, pixels)

"""The labels of an episode: what the actor should have done at each step for each subtask."""

from __future__ import annotations

import dataclasses

import numpy as np

from predimem.core.episodes import Alternatives, Episode


def labels_of(episode: Episode, horizon: int, num_cameras: int) -> Alternatives:
    """The episode's alternatives; without any, what was done, as one alternative per subtask. A conditioning video, in
    which somebody else acts, has none.

    Those are views of the actions: written out they would take 10 MB for each episode of 1,000 steps.
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
    targets_m = np.broadcast_to(unknown, (steps, len(subtasks), 3))
    pixels = np.broadcast_to(unknown, (steps, len(subtasks), num_cameras, 2))
    return Alternatives(subtasks, chunks, valid, targets_m, pixels)

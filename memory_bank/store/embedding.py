"""Embeddings for the keyframes of a store that have none yet."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator, Sequence

import numpy as np

from memory_bank.store.records import EVERYTHING, DamagedImage, Scope, StoredKeyframe
from memory_bank.store.store import MemoryStore
from predimem.core.types import Frame

log = logging.getLogger(__name__)
BATCH = 16  # keyframes that are embedded and written at once


def embed_missing(
    store: MemoryStore,
    keyframes: Sequence[StoredKeyframe],
    model: str,
    embed: Callable[[Sequence[Frame]], np.ndarray],
    fits: Callable[[StoredKeyframe, Frame], bool] = lambda keyframe, frame: True,
    damaged: Callable[[StoredKeyframe], object] = lambda keyframe: None,
) -> Iterator[int]:
    """Add embeddings to keyframes; after each batch, how many it had. What is done stays done.

    embed: F frames -> float [F, D]. A keyframe that is deleted meanwhile is left out, and so is one that does
    not fit or whose file is damaged; of the latter `damaged` is told.
    """
    for start in range(0, len(keyframes), BATCH):
        batch, frames = keyframes[start : start + BATCH], {}
        for keyframe in batch:
            try:
                frame = store.frame(keyframe.key, keyframe.step)
            except KeyError:
                continue
            except DamagedImage as error:
                log.warning("step %d of %s gets no embedding: %s", keyframe.step, keyframe.episode_id, error)
                damaged(keyframe)
                continue
            if fits(keyframe, frame):
                frames[keyframe.id] = frame
        if frames:
            store.embed(model, dict(zip(frames, embed(list(frames.values())), strict=True)))
        yield len(batch)


def embeddable(
    store: MemoryStore, model: str, cameras: Collection[str], scope: Scope = EVERYTHING
) -> tuple[list[StoredKeyframe], int]:
    """The keyframes without an embedding of `model` that show all these cameras, oldest first; how many do not."""
    missing = store.without_embedding(model, scope)
    fitting = [keyframe for keyframe in missing if set(cameras) <= set(keyframe.cameras)]
    return fitting, len(missing) - len(fitting)

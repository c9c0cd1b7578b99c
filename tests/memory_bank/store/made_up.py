"""Episodes for the store whose images and embeddings follow from their episode and step."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from memory_bank.store import MemoryStore, NewKeyframe
from predimem.core.types import Frame

MODEL, DIM = "tower", 16


def image(name: str, step: int, camera: str = "hand") -> np.ndarray:
    """uint8 [4, 5, 3]."""
    seed = [step, *name.encode(), *camera.encode()]
    return np.random.default_rng(seed).integers(0, 256, (4, 5, 3), np.uint8)


def frame(name: str, step: int) -> Frame:
    return Frame(step, step / 20, {camera: image(name, step, camera) for camera in ("hand", "agentview")})


def vector(name: str, step: int) -> np.ndarray:
    """float64 [DIM], not of length 1."""
    return np.random.default_rng([step, *name.encode(), 7]).normal(size=DIM)


def keyframe(name: str, step: int, subtask: str = "open drawer", nominated: bool = True) -> NewKeyframe:
    return NewKeyframe(frame(name, step), subtask, nominated, {MODEL: vector(name, step)})


def play(
    store: MemoryStore, name: str, steps: Iterable[int] = (3, 8), task: str = "find it", session: str | None = None
) -> int:
    """An episode with keyframes; its key."""
    key = store.begin(name, task, session=session)
    store.keep_frames(key, [keyframe(name, step) for step in steps])
    return key


def assert_images(store: MemoryStore, key: int, name: str, step: int) -> None:
    found = store.frame(key, step)
    assert found.time_s == step / 20 and sorted(found.images) == ["agentview", "hand"]
    for camera, shown in found.images.items():
        np.testing.assert_array_equal(shown, image(name, step, camera))

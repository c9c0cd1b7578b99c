"""A memory of one's own: it keeps a frame that looks unlike all that it has kept.

    predimem verify memory examples/novel_frames.py:NovelFrames

The embedding is simple: each camera's image as 8 x 8 mean colours, lightened or darkened to the same mean. The
planner's own vision tower would see more, but it runs in the planner's thread or process, and a memory in the control
thread.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from memory_bank import MemoryConfig, RecentWindow
from predimem.core.types import Frame, MemorySnapshot, Observation

SIDE = 8


class NovelFrames:
    """Keeps a frame whose embedding is further than `distance` from those of all frames that are kept.

    distance: the mean absolute difference of colours, of 255.
    every_steps: one frame of so many control steps is looked at.

    At most `keyframe_capacity` frames are kept (8 where the config sets none). When there are too many, the one goes
    that is most like the frame kept before it. What the planner nominates is ignored.
    """

    def __init__(self, config: MemoryConfig, distance: float = 3.0, every_steps: int = 1):
        self._config, self._distance, self._every = config, distance, every_steps

    def reset(self, episode_id: str, instruction: str) -> None:
        self._episode_id, self._instruction = episode_id, instruction
        self._window = RecentWindow(self._config)
        self._kept: list[tuple[Frame, np.ndarray]] = []

    def observe(self, observation: Observation) -> None:
        frame = self._window.add(observation)
        if self._config.keyframes and frame.step % self._every == 0:
            self._keep_if_novel(frame)

    def nominate(self, steps: Iterable[int]) -> None:
        """Novelty decides."""

    def snapshot(self) -> MemorySnapshot:
        recent = self._window.frames()
        keyframes = self._window.older(frame for frame, _ in self._kept)
        return MemorySnapshot(self._episode_id, recent[-1].step, self._instruction, recent, keyframes)

    @property
    def keyframe_steps(self) -> tuple[int, ...]:
        return tuple(frame.step for frame, _ in self._kept)

    def _keep_if_novel(self, frame: Frame) -> None:
        seen = embedding(frame.images)
        if any(np.abs(seen - kept).mean() <= self._distance for _, kept in self._kept):
            return
        self._kept.append((frame, seen))
        if len(self._kept) > (self._config.keyframe_capacity or 8):
            pairs = zip(self._kept, self._kept[1:], strict=False)
            changes = [np.abs(after - before).mean() for (_, before), (_, after) in pairs]
            del self._kept[int(np.argmin(changes)) + 1]


def embedding(images: Mapping[str, np.ndarray]) -> np.ndarray:
    """float32 [cameras x 8 x 8 x 3]: mean colours of 8 x 8 fields, of the same mean over the whole image."""
    return np.concatenate([_colours(image) for image in images.values()])


def _colours(image: np.ndarray) -> np.ndarray:
    rows, columns = (np.linspace(0, side, SIDE + 1).astype(int)[:-1] for side in image.shape[:2])
    sums = np.add.reduceat(np.add.reduceat(image, rows, axis=0, dtype=np.float32), columns, axis=1)
    counts = np.outer(np.diff([*rows, image.shape[0]]), np.diff([*columns, image.shape[1]]))
    fields = sums / counts[..., None]
    return (fields + 127.5 - fields.mean()).ravel()

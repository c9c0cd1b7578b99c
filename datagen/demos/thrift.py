"""Which images of a demonstration are rendered: rendering is nearly all that one costs.

Episodes store images less often than control steps (`predimem.core.frames.Frames`), each of which holds until the next.
An image that is old does not show what the labels of its step say, so that steps without a fresh one are no examples
for the actor (`Alternatives.valid`), and the planner should be trained on a grid of `every` (`step_grid`,
`recent_stride_steps`) and asked at run time as often.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from predimem.core.config import ConfigError
from predimem.core.episodes import Alternatives, SubtaskSpan
from predimem.core.frames import Frames


@dataclass(frozen=True)
class ThriftConfig:
    """every: control steps from one image to the next; 1 renders all. around_steps: so many images before and after
    each change of subtask and each keyframe are rendered besides."""

    every: int = 1
    around_steps: int = 2

    def __post_init__(self) -> None:
        for name, least in (("every", 1), ("around_steps", 0)):
            if getattr(self, name) < least:
                raise ConfigError(f"{name} must be >= {least}, got {getattr(self, name)}")


def image_steps(
    steps: int, subtasks: Sequence[SubtaskSpan], keyframes: Iterable[int], config: ThriftConfig
) -> frozenset[int]:
    """The steps of an episode of `steps` at which an image is rendered; 0 is among them."""
    wanted = set(range(0, steps, config.every))
    for event in (*(span.start for span in subtasks), *keyframes):
        wanted |= set(range(event - config.around_steps, event + config.around_steps + 1))
    return frozenset(step for step in wanted if 0 <= step < steps)


def sparse_frames(images: Sequence[np.ndarray], looked: frozenset[int]) -> Frames:
    """images: T images uint8 [H, W, 3] of one camera, of which only those of the steps `looked` are fresh."""
    fresh = np.array([step in looked for step in range(len(images))])
    return Frames(np.stack([image for image, new in zip(images, fresh, strict=True) if new]), np.cumsum(fresh) - 1)


def only_fresh(alternatives: Alternatives, looked: frozenset[int]) -> Alternatives:
    """The same labels, valid only at the steps of fresh images."""
    valid = alternatives.valid.copy()
    valid[[step not in looked for step in range(len(valid))]] = False
    return replace(alternatives, valid=valid)

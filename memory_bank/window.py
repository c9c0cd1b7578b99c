"""The recent window: the frames that every memory shows the planner besides what it keeps."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from types import MappingProxyType

import numpy as np

from memory_bank.config import MemoryConfig
from predimem.core.frames import StepImages
from predimem.core.types import Frame, Observation


class RecentWindow:
    """The last frames of an episode, as a config says. Every memory needs one, one of your own, too.

    An image is copied once, when it is added; all frames share that one read-only array.
    """

    def __init__(self, config: MemoryConfig):
        self._config = config
        self._frames: deque[Frame] = deque(maxlen=config.window_steps)

    @property
    def last(self) -> Frame | None:
        """The newest frame."""
        return self._frames[-1] if self._frames else None

    def add(self, observation: Observation) -> Frame:
        """Take in one control step; the frame that holds what was sensed. Raises ValueError unless steps increase."""
        if self._frames and observation.step <= self._frames[-1].step:
            raise ValueError(
                f"observations must come in order: got step {observation.step} after "
                f"{self._frames[-1].step}; call reset() between episodes"
            )
        state = _read_only(observation.state)
        frame = Frame(observation.step, observation.time_s, frozen_images(observation.images), state)
        self._frames.append(frame)
        return frame

    def frames(self) -> tuple[Frame, ...]:
        """`recent_window` frames, oldest first, `recent_stride_steps` apart, the last one is the newest; fewer at the
        beginning of an episode. Raises ValueError before the first one."""
        if not self._frames:
            raise ValueError("nothing observed yet: call observe() before snapshot()")
        return tuple(self._frames)[:: -self._config.recent_stride_steps][::-1]

    def older(self, keyframes: Iterable[Frame]) -> tuple[Frame, ...]:
        """Those of the keyframes that the planner may see now: they are older than the window.

        A window that is not full yet reaches back to the start, so that nothing is older.
        """
        recent = self.frames()
        full = len(recent) == self._config.recent_window
        return tuple(frame for frame in keyframes if frame.step < recent[0].step) if full else ()

    def upcoming(self, steps: int, keyframes: Iterable[Frame]) -> tuple[tuple[Frame, ...], tuple[Frame, ...]]:
        """What is known already of the window as it will be `steps` observations later, and what will be older.

        (its frames without those that are still to come, of which the newest is one; those of the keyframes that will
        be older than it). Raises ValueError before the first observation.
        """
        known = {frame.step: frame for frame in self._frames}
        if not known:
            raise ValueError("nothing observed yet: call observe() before upcoming()")
        last, config = max(known), self._config
        seen = [*known, *range(last + 1, last + steps + 1)][-config.window_steps :]
        window = seen[:: -config.recent_stride_steps][::-1]
        full = len(window) == config.recent_window
        older = tuple(frame for frame in keyframes if frame.step < window[0]) if full else ()
        return tuple(known[step] for step in window[:-1] if step in known), older


def frozen_images(images: Mapping[str, np.ndarray]) -> Mapping[str, np.ndarray]:
    """The images, which nobody can change any more: each is copied unless it is private and read-only already."""
    if isinstance(images, StepImages):
        return images  # of a recorded episode, read when they are looked at
    return MappingProxyType({name: _read_only(image) for name, image in images.items()})


def _read_only(image: np.ndarray) -> np.ndarray:
    """The image itself if nobody can change it, else one private copy."""
    if image.flags.writeable or image.base is not None:
        image = image.copy()
        image.flags.writeable = False
    return image

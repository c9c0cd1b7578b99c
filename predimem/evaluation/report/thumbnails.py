"""A subscriber that keeps a small image of every keyframe, for videos and the report.

What it holds is bounded: the images of the last `HISTORY_STEPS` steps, and one small image for each keyframe and
camera. The memory can nominate a frame only while it is in its own history, which by default is as long.
"""

from __future__ import annotations

import base64
import io
from collections import OrderedDict
from collections.abc import Mapping

import numpy as np
from PIL import Image

from predimem.core.types import EpisodeResult, Observation, StepResult, Tick

HISTORY_STEPS = 256
THUMBNAIL_PX = 256  # the models' own images are 128 px wide and stay as they are


class KeyframeThumbnails:
    """A Subscriber. `thumbnails`: step -> camera -> image of every frame that memory ever stored."""

    def __init__(self, history_steps: int = HISTORY_STEPS):
        self._history_steps = history_steps
        self._frames: OrderedDict[int, Mapping[str, np.ndarray]] = OrderedDict()
        self.thumbnails: dict[int, dict[str, Image.Image]] = {}

    def on_reset(self, observation: Observation, instruction: str, episode_id: str) -> None:
        self._frames.clear()
        self.thumbnails = {}

    def on_step(self, observation: Observation, action: np.ndarray, tick: Tick, result: StepResult) -> None:
        self._frames[observation.step] = observation.images
        while len(self._frames) > self._history_steps:
            self._frames.popitem(last=False)
        for step in tick.keyframe_steps:
            if step not in self.thumbnails and step in self._frames:
                self.thumbnails[step] = {c: _thumbnail(image) for c, image in self._frames[step].items()}

    def on_end(self, result: EpisodeResult) -> None:
        self._frames.clear()

    def as_json(self) -> dict[str, dict[str, str]]:
        """Step -> camera -> data URI of a JPEG, as the report embeds them."""
        return {
            str(step): {camera: _data_uri(image) for camera, image in cameras.items()}
            for step, cameras in sorted(self.thumbnails.items())
        }


def _thumbnail(image: np.ndarray) -> Image.Image:
    small = Image.fromarray(np.array(image))  # a copy: the environment may reuse its buffer
    small.thumbnail((THUMBNAIL_PX, THUMBNAIL_PX), Image.Resampling.LANCZOS)
    return small


def _data_uri(image: Image.Image) -> str:
    buffer = io.BytesIO()
    image.save(buffer, "JPEG", quality=85)
    return "data:image/jpeg;base64," + base64.b64encode(buffer.getvalue()).decode()

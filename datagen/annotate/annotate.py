"""Asks a model for the subtasks of one episode."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from datagen.annotate.answer import read_spans
from datagen.annotate.prompt import correction, first_messages, response_format
from datagen.decompose.config import VlmConfig
from datagen.decompose.endpoint import Endpoint
from datagen.decompose.steps import AnswerError
from datagen.imports.videos import scaled
from predimem.core.episodes import Episode, SubtaskSpan
from predimem.core.frames import EpisodeError

NOTHING_SAID = "(nothing)"  # some servers take no message without a text


@dataclass(frozen=True)
class ViewConfig:
    """Which images of an episode the model gets.

    camera: the name of the camera; "": the first one.
    images: how many at most. Keyframes come first, because the motion changes there; the rest is spread evenly.
    max_px: the longer side of an image.
    """

    camera: str = ""
    images: int = 32
    max_px: int = 336

    def __post_init__(self) -> None:
        if self.images < 2 or self.max_px < 8:
            raise ValueError(f"expected 2 images of 8 px or more, got {self.images} of {self.max_px}")


def shown_steps(steps: int, keyframes: Sequence[int], images: int) -> list[int]:
    """Sorted, the first and the last step among them; where there is not room for all keyframes, evenly chosen ones."""
    inner = [step for step in sorted(set(keyframes)) if 0 < step < steps - 1]
    if len(inner) > images - 2:
        inner = [inner[i] for i in np.linspace(0, len(inner) - 1, images - 2).round().astype(int)]
    chosen = {0, steps - 1, *inner}
    while len(chosen) < min(images, steps):  # into the middle of the longest gap
        known = sorted(chosen)
        before, after = max(pairwise(known), key=lambda gap: gap[1] - gap[0])
        chosen.add((before + after) // 2)
    return sorted(chosen)


class Annotator:
    """labels: those that the model may use; empty: any."""

    def __init__(self, config: VlmConfig, views: ViewConfig, labels: Sequence[str] = ()) -> None:
        self._config, self._views, self._labels = config, views, tuple(labels)
        self._endpoint = Endpoint(config)

    def spans(self, episode: Episode, keyframes: Sequence[int]) -> tuple[SubtaskSpan, ...]:
        """Raises EpisodeError if the last correction is still faulty, and EndpointError as `Endpoint.ask`."""
        camera = self._views.camera or next(iter(episode.images), "")
        if camera not in episode.images:
            raise EpisodeError(f"there is no camera {camera!r}; the episode has {', '.join(episode.images) or 'none'}")
        frames = episode.images[camera]
        shown = shown_steps(len(episode), keyframes, self._views.images)
        views = [scaled(frames[step], self._views.max_px) for step in shown]
        messages = first_messages(episode.instruction, views, shown, episode.control_hz, self._labels)
        problems: Sequence[str] = ()
        for _ in range(self._config.corrections + 1):
            answer = self._endpoint.ask(messages, response_format(self._labels), lambda elapsed_s: None)
            try:
                return read_spans(answer, shown, len(episode), self._labels)
            except AnswerError as error:
                problems = error.problems
                messages += [{"role": "assistant", "content": answer or NOTHING_SAID}, correction(problems)]
        raise EpisodeError(
            f"{self._config.model} named no usable subtasks in {self._config.corrections + 1} answers; the last: "
            f"{'; '.join(problems)}"
        )

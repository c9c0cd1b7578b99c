"""What an episode is: a demonstration as arrays, with the subtasks and keyframes that annotate it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from predimem.core.frames import EpisodeError, Frames

VIDEO_STEPS = "video_steps"  # of `Episode.metadata`
NAME_SUBTASKS = (
    "name its subtasks with `predimem annotate`, or import it again with `--subtasks spans.csv`, or with `--subtasks "
    "instruction` for the whole instruction as the only one"
)


class NoSubtask(EpisodeError, IndexError):
    """A step, or a whole episode, without the subtask that training needs."""


@dataclass(frozen=True)
class SubtaskSpan:
    """The subtask `label` holds for control steps start <= t < end."""

    start: int
    end: int
    label: str


@dataclass(frozen=True, eq=False)
class Alternatives:
    """What the scripted expert would do at each step for each of K subtasks, done or not.

    They let one image supervise several subtasks (counterfactual relabelling).

    chunks: float32 [T, K, H, A], in physical units.
    valid: bool [T, K].
    targets_m: float32 [T, K, 3], the target's position in the robot's base frame, NaN where a subtask has none.
    pixels: float32 [T, K, C, 2], the target's (u, v) in each camera as fractions of width and height, NaN where it is
    not in view.
    """

    subtasks: tuple[str, ...]
    chunks: np.ndarray
    valid: np.ndarray
    targets_m: np.ndarray
    pixels: np.ndarray


@dataclass(frozen=True, eq=False)
class Episode:
    """One demonstration. All arrays share the leading axis T (control steps).

    benchmark: whose task it is; its key in the file is `suite`.
    goal: the subtask that fulfils the instruction in this episode, such as "touch the teal cube".
    images: camera -> `Frames`; plain arrays uint8 [T, H, W, 3] are made into them.
    """

    benchmark: str
    task: str
    seed: int
    instruction: str
    control_hz: float
    success: bool
    images: Mapping[str, Frames]
    state: np.ndarray
    actions: np.ndarray
    subtasks: tuple[SubtaskSpan, ...]
    keyframes: tuple[int, ...]
    goal: str = ""
    alternatives: Alternatives | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        frames = {name: f if isinstance(f, Frames) else Frames(f) for name, f in self.images.items()}
        object.__setattr__(self, "images", frames)

    def __len__(self) -> int:
        return len(self.state)

    @property
    def image_steps(self) -> np.ndarray:
        """bool [T]: at which steps fresh images were taken, by any camera."""
        return np.any([np.zeros(len(self), bool), *(frames.stored for frames in self.images.values())], axis=0)

    @property
    def video_steps(self) -> int:
        """How many of the first steps are a conditioning video, in which the robot that is trained did not act."""
        return int(self.metadata.get(VIDEO_STEPS, 0))

    @property
    def goes_back(self) -> bool:
        """Whether a subtask that had been done came undone and was done again (`span_stages` of the metadata)."""
        stages = list(self.metadata.get("span_stages", ()))
        return stages != sorted(stages)

    def subtask_at(self, step: int) -> str:
        """The label of the span that holds `step`. Raises NoSubtask outside all spans."""
        for span in self.subtasks:
            if span.start <= step < span.end:
                return span.label
        raise NoSubtask(f"step {step} is in no subtask span of {self.task} seed {self.seed}: {NAME_SUBTASKS}")


def check_subtasks(episode: Episode, where: str | Path) -> None:
    """Raises NoSubtask for an episode without any."""
    if not episode.subtasks and episode.alternatives is None:
        raise NoSubtask(f"{where}: {episode.task} seed {episode.seed} has no subtasks: {NAME_SUBTASKS}")

"""`predimem play`: plays one episode, shows its progress and writes its video."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from predimem.core.progress import Bar
from predimem.core.types import EpisodeResult, Observation, StepResult, Tick
from predimem.evaluation.report.video import LONG_EPISODES, VideoRecorder
from predimem.evaluation.run.jobs import Player


def film_episode(player: Player, task: str, agent: str, seed: int, path: Path) -> EpisodeResult:
    """Play one episode and write its video to `path`.

    Without a single step (the environment could not be reset) there is no video, and the result is an
    error. Raises ValueError for a seed that is negative or too large.
    """
    if not 0 <= seed < 2**32:
        raise ValueError(f"expected a seed in [0, 2**32), got {seed}")
    title = f"{task}   agent {agent}   seed {seed}"
    return player.play(task, agent, seed, [VideoRecorder(path, LONG_EPISODES, title=title), ProgressBar(title)])


class ProgressBar:
    """A Subscriber that shows steps, stages and the subtask."""

    def __init__(self, title: str):
        self._title = title
        self._bar: Bar | None = None

    def on_reset(self, observation: Observation, instruction: str, episode_id: str) -> None:
        self._bar = Bar(None, "steps", self._title)

    def on_step(self, observation: Observation, action: np.ndarray, tick: Tick, result: StepResult) -> None:
        info = result.info
        stages = f"{info['stages_passed']}/{info['stages_total']} stages  " if "stages_total" in info else ""
        assert self._bar is not None
        self._bar.add(text=stages + tick.subtask)

    def on_end(self, result: EpisodeResult) -> None:
        if self._bar is not None:
            self._bar.close()

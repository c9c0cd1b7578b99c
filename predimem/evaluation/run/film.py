"""`predimem play`: plays one episode, shows its progress and writes its video."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

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
    """A Subscriber that shows steps, stages and the subtask on the terminal."""

    def __init__(self, title: str):
        self._title = title
        self._bar: Any = None

    def on_reset(self, observation: Observation, instruction: str, episode_id: str) -> None:
        from tqdm import tqdm

        self._bar = tqdm(desc=self._title, unit="step", mininterval=0.5, dynamic_ncols=True)

    def on_step(self, observation: Observation, action: np.ndarray, tick: Tick, result: StepResult) -> None:
        info = result.info
        stages = f"{info['stages_passed']}/{info['stages_total']} stages  " if "stages_total" in info else ""
        self._bar.set_postfix_str(stages + tick.subtask, refresh=False)
        self._bar.update()

    def on_end(self, result: EpisodeResult) -> None:
        if self._bar is not None:
            self._bar.close()

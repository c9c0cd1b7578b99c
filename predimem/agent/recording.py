"""Records the trace of an episode: every tick and the result, as plain JSON data."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np

from predimem.core.types import EpisodeResult, Observation, StepResult, Tick


class TraceRecorder:
    """A Subscriber. `trace` is valid after `on_end`; it has no ticks if the environment could not be reset."""

    def __init__(self) -> None:
        self.trace: dict[str, Any] = {"episode_id": "", "instruction": "", "ticks": []}

    def on_reset(self, observation: Observation, instruction: str, episode_id: str) -> None:
        self.trace = {"episode_id": episode_id, "instruction": instruction, "ticks": []}

    def on_step(self, observation: Observation, action: np.ndarray, tick: Tick, result: StepResult) -> None:
        self.trace["ticks"].append(asdict(tick) | {"action": np.asarray(action).round(4).tolist()})

    def on_end(self, result: EpisodeResult) -> None:
        self.trace = {"task": result.task, "agent": result.agent, "seed": result.seed} | self.trace
        self.trace["result"] = asdict(result)

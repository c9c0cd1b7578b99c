"""Takes the fingerprint of an episode's trajectory, which tells whether the episode came out the same a second time."""

from __future__ import annotations

import hashlib

import numpy as np

from predimem.core.types import EpisodeResult, Observation, StepResult, Tick


class TrajectoryFingerprint:
    """A Subscriber. `value` is a hash of all actions, subtasks, answers of S2 and keyframes so far (16 hex digits).

    Wall-clock times are not in it, so in simulated time it is the same wherever the arithmetic is.
    """

    def __init__(self) -> None:
        self._digest = hashlib.sha256()

    def on_reset(self, observation: Observation, instruction: str, episode_id: str) -> None:
        self._digest = hashlib.sha256(instruction.encode())

    def on_step(self, observation: Observation, action: np.ndarray, tick: Tick, result: StepResult) -> None:
        self._digest.update(np.ascontiguousarray(action, np.float32).tobytes())
        told = (tick.step, tick.subtask, tick.plan_age_steps, tick.plan_text, tick.plan_error, tick.keyframe_steps)
        self._digest.update(repr(told).encode())

    def on_end(self, result: EpisodeResult) -> None:
        pass

    @property
    def value(self) -> str:
        return self._digest.hexdigest()[:16]

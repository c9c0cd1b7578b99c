"""A hand-written player for the evaluation's tests: a tiny world of coloured frames, no models."""

from __future__ import annotations

import os
import resource
import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from predimem.core.faults import SetupError
from predimem.core.interfaces import Subscriber
from predimem.core.types import EpisodeResult, Observation, StepResult, Tick

HORIZON = 12
MISTAKE_STEP = 9  # of episodes that fail
CAMERAS: tuple[str, ...] = ("base_camera", "hand_camera")


def observation(step: int, seed: int = 0) -> Observation:
    """Two 32 x 32 frames; the base camera's red channel tells the step (10 per step)."""
    base = np.full((32, 32, 3), (10 * step, 80, seed % 200), np.uint8)
    hand = np.full((32, 32, 3), (200, 10 * step, 30), np.uint8)
    images = dict(zip(CAMERAS, (base, hand), strict=True))
    return Observation(step, images, np.zeros(7, np.float32), step / 20)


def tick(step: int, planner: bool = True) -> Tick:
    """S2 answers every third step with an age of 2 (at step 6: with invalid JSON); S1 every fourth."""
    if not planner:
        return Tick(step, "touch", None, stale_action=False, held_action=False, s1_latency_s=0.01)
    arrived = step % 3 == 2
    invalid = step == 8
    return Tick(
        step=step,
        subtask="" if step < 2 else "watch" if step < 5 else "touch the <teal> cube",
        plan_age_steps=None if step < 2 else 5 if step == 8 else 2 + (step - 2) % 3,
        stale_action=step == 5,
        held_action=step < 3,
        s1_latency_s=0.02 if step >= 2 and step % 4 == 2 else None,
        s2_latency_s=0.1 if arrived else None,
        plan_arrived=arrived,
        plan_text='{"current_primitive": "x"}' if arrived else None,
        plan_error="expected JSON, got 'x'" if invalid else None,
        keyframe_steps=() if step < 2 else (0,) if step < 8 else (0, 5),
        plan_subtask=("watch" if step < 5 else "touch the <teal> cube") if arrived and not invalid else None,
        plan_step=step - 2 if arrived else None,
    )


def play_frames(subscribers: Sequence[Subscriber], result: EpisodeResult, planner: bool = True) -> EpisodeResult:
    for subscriber in subscribers:
        subscriber.on_reset(observation(0, result.seed), "remember <the> cube", "episode")
    for step in range(result.steps):
        now, after = observation(step, result.seed), observation(step + 1, result.seed)
        info = {"mistake": "touched the <red> cube"} if step == MISTAKE_STEP and result.status == "failure" else {}
        outcome = StepResult(after, step == result.steps - 1, False, result.status == "success", info)
        for subscriber in subscribers:
            subscriber.on_step(now, np.zeros(7, np.float32), tick(step, planner), outcome)
    for subscriber in subscribers:
        subscriber.on_end(result)
    return result


@dataclass
class FakePlayer:
    """predimem succeeds unless seed % 5 == 4, other agents only if seed % 5 == 0.

    kill_seed: the process kills itself (not for `reactive`); raise_seed: play raises; error_seed: play
    reports an error; hang_seed: play never returns; unfit: what `load` raises; unreachable_seed: play
    meets a fault of the set-up; file_bytes: the system lets files grow no larger than this, as on a full disk.
    weights: a hash that the provenance shows; agent_configs: what it says of single agents.
    """

    kill_seed: int | None = None
    raise_seed: int | None = None
    error_seed: int | None = None
    hang_seed: int | None = None
    unfit: Exception | None = None
    unreachable_seed: int | None = None
    file_bytes: int | None = None
    delay_s: float = 0.0
    weights: str = "abc"
    agent_configs: dict[str, Any] | None = None
    benchmark_version: str = "fake 1.0"

    def load(self, agents: Sequence[str]) -> None:
        if self.unfit is not None:
            raise self.unfit

    def play(self, task: str, agent: str, seed: int, subscribers: Sequence[Subscriber]) -> EpisodeResult:
        time.sleep(self.delay_s)
        if seed == self.kill_seed and agent != "reactive":
            os.kill(os.getpid(), signal.SIGKILL)
        if seed == self.raise_seed:
            raise RuntimeError("the simulator is on fire")
        if seed == self.unreachable_seed:
            raise RuntimeError("the planner failed") from SetupError("http://robot:8000 cannot be reached: start it")
        if self.file_bytes is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (self.file_bytes, resource.RLIM_INFINITY))
        if seed == self.hang_seed:
            time.sleep(3600)
        if seed == self.error_seed:
            result = EpisodeResult(task, agent, seed, "error", 3, message="ValueError: no such cube\ntrace")
            return play_frames(subscribers, result)
        good = seed % 5 != 4 if agent == "predimem" else seed % 5 == 0
        metrics = {"wrong_first_touch": 0.0 if good else 1.0, "distance_m": 0.02 if good else float("nan")}
        status = "success" if good else "failure"
        result = EpisodeResult(task, agent, seed, status, HORIZON, 2 if good else 1, 2, metrics=metrics)
        return play_frames(subscribers, result, planner=agent != "reactive")

    def true_keyframes(self, states: np.ndarray, hz: float) -> tuple[int, ...]:
        return (0, 4)

    def provenance(self) -> dict[str, Any]:
        agents = {} if self.agent_configs is None else {"agent_configs": self.agent_configs}
        return {
            "benchmark_version": self.benchmark_version,
            "weights": {"planner": self.weights, "actor": "def"},
        } | agents

    def close(self) -> None:
        pass


def broken_player() -> FakePlayer:
    raise FileNotFoundError("weights not found: planner.safetensors")


def suicidal_player() -> FakePlayer:
    os._exit(7)

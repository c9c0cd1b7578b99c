"""Sums up the ticks of an episode into the few numbers that results.json keeps of it."""

from __future__ import annotations

from typing import Any

import numpy as np

from predimem.types import EpisodeResult, Observation, StepResult, Tick


class TickStatistics:
    """A Subscriber. `numbers` is valid at any time; None stands for "did not occur".

    plan_age_steps: mean over the ticks that had a plan. stale_action_ratio, held_action_ratio: of
    all ticks. s1_ms, s2_ms: every wall-clock latency. keyframes: held in memory at the end.
    """

    def __init__(self) -> None:
        self._ticks: list[Tick] = []

    def on_reset(self, observation: Observation, instruction: str, episode_id: str) -> None:
        self._ticks = []

    def on_step(self, observation: Observation, action: np.ndarray, tick: Tick, result: StepResult) -> None:
        self._ticks.append(tick)

    def on_end(self, result: EpisodeResult) -> None:
        pass

    @property
    def numbers(self) -> dict[str, Any]:
        ticks = self._ticks
        ages = [t.plan_age_steps for t in ticks if t.plan_age_steps is not None]
        return {
            "plan_age_steps": sum(ages) / len(ages) if ages else None,
            "stale_action_ratio": sum(t.stale_action for t in ticks) / len(ticks) if ticks else None,
            "held_action_ratio": sum(t.held_action for t in ticks) / len(ticks) if ticks else None,
            "s1_ms": [round(1e3 * t.s1_latency_s, 3) for t in ticks if t.s1_latency_s is not None],
            "s2_ms": [round(1e3 * t.s2_latency_s, 3) for t in ticks if t.s2_latency_s is not None],
            "answers": sum(t.plan_arrived for t in ticks),
            "invalid_answers": sum(t.plan_error is not None for t in ticks),
            "keyframes": len(ticks[-1].keyframe_steps) if ticks else 0,
        }

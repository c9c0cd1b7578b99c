"""Sums up the ticks of an episode into the few numbers that its record keeps of them."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from predimem.core.types import EpisodeResult, Observation, StepResult, Tick


class TickStatistics:
    """A Subscriber. `numbers` is valid at any time; None stands for "did not occur".

    plan_age_steps: the mean age over the ticks that had a plan
    plan_ages: [age, number of ticks] for each age that occurred
    stale_action_ratio, held_action_ratio: shares of all ticks
    s1_ms, s2_ms: every wall-clock latency
    s1_hz, s2_hz: chunks and answers in a second of the environment's control clock; there is no S2 where every answer
        is the whole instruction
    answers, invalid_answers: how many answers S2 gave, and how many of them were not valid
    homings: how often the hand went home, because it did not get on with a subtask
    refusals: at how many ticks S1 held still because the subtask's label is ambiguous in this task
    keyframes: how many were in memory at the end
    """

    def __init__(self) -> None:
        self._ticks: list[Tick] = []
        self._end_s = 0.0
        self._instruction = ""

    def on_reset(self, observation: Observation, instruction: str, episode_id: str) -> None:
        self._ticks, self._end_s, self._instruction = [], 0.0, instruction

    def on_step(self, observation: Observation, action: np.ndarray, tick: Tick, result: StepResult) -> None:
        self._ticks.append(tick)
        self._end_s = result.observation.time_s

    def on_end(self, result: EpisodeResult) -> None:
        pass

    @property
    def numbers(self) -> dict[str, Any]:
        ticks = self._ticks
        ages = [t.plan_age_steps for t in ticks if t.plan_age_steps is not None]
        s1_ms = [round(1e3 * t.s1_latency_s, 3) for t in ticks if t.s1_latency_s is not None]
        back_before = [False, *(t.homing for t in ticks)][: len(ticks)]
        answers = sum(t.plan_arrived for t in ticks)
        planned = any(t.plan_arrived and t.subtask != self._instruction for t in ticks)
        return {
            "plan_age_steps": sum(ages) / len(ages) if ages else None,
            "plan_ages": sorted(Counter(ages).items()),
            "stale_action_ratio": sum(t.stale_action for t in ticks) / len(ticks) if ticks else None,
            "held_action_ratio": sum(t.held_action for t in ticks) / len(ticks) if ticks else None,
            "s1_ms": s1_ms,
            "s2_ms": [round(1e3 * t.s2_latency_s, 3) for t in ticks if t.s2_latency_s is not None],
            "s1_hz": self._per_second(len(s1_ms)),
            "s2_hz": self._per_second(answers) if planned else None,
            "answers": answers,
            "invalid_answers": sum(t.plan_error is not None for t in ticks),
            "homings": sum(now.homing and not before for now, before in zip(ticks, back_before, strict=True)),
            "refusals": sum(t.refusal is not None for t in ticks),
            "keyframes": len(ticks[-1].keyframe_steps) if ticks else 0,
        }

    def _per_second(self, count: int) -> float | None:
        return count / self._end_s if count and self._end_s else None

"""What a robot is told at one control step, as plain data and one array."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from predimem.core.types import Tick


@dataclass(frozen=True)
class Standing:
    """What all replies of an episode say.

    resumed: the episode was read from the disk. memory_from_step: the first step that its memory goes back to.
    warning: what its robot's people should know; None for nothing.
    """

    resumed: bool = False
    memory_from_step: int = 0
    warning: str | None = None


def make_reply(
    episode_id: str,
    standing: Standing,
    tick: Tick,
    rows: Sequence[np.ndarray],
    valid: int,
    planner: str,
    control_hz: float,
) -> dict[str, Any]:
    """rows: float32 [A] each, of which the actor gave the first `valid`. planner: how S2 is doing."""
    age = tick.plan_age_steps
    return {
        "actions": np.stack(rows).astype(np.float32),
        "actions_valid": valid,
        "episode_id": episode_id,
        "step": tick.step,
        "subtask": tick.subtask,
        "plan_age_steps": age,
        "plan_age_s": None if age is None else age / control_hz,
        "plan_error": tick.plan_error,
        "planner": planner,
        "plan_confidence": tick.plan_confidence,
        "keyframe_steps": list(tick.keyframe_steps),
        "stale_action": tick.stale_action,
        "warning": standing.warning,
        "resumed": standing.resumed,
        "memory_from_step": standing.memory_from_step,
        "s1_ms": None if tick.s1_latency_s is None else 1000 * tick.s1_latency_s,
        "s2_ms": None if tick.s2_latency_s is None else 1000 * tick.s2_latency_s,
    }

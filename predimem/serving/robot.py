"""What a client has to send and what it gets: the metadata frame that openpi's protocol opens with."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import predimem
from memory_bank import MemoryConfig
from predimem.core.interfaces import Planner, Policy
from predimem.serving.config import ServeConfig

PROTOCOL = 1  # raised when a field of a reply or of the metadata changes its meaning


@dataclass(frozen=True)
class RobotSpec:
    """cameras: names of the images; image_size: their [height, width]."""

    cameras: tuple[str, ...]
    image_size: tuple[int, int]
    state_dim: int
    action_dim: int


@dataclass(frozen=True)
class Served:
    """The models, as `predimem.serving.models.make_served` gives them.

    make_planner: builds S2 in its own process, so it can be pickled; None: there is no planner, and the task
    is the subtask.
    memory: the memory that the planner was trained with.
    weights: model -> hash.
    known_prompts: the tasks that the planner was trained for; None where that is not known.
    """

    robot: RobotSpec
    policy: Policy
    make_planner: Callable[[], Planner] | None
    memory: MemoryConfig
    weights: Mapping[str, str] = field(default_factory=dict)
    known_prompts: frozenset[str] | None = None

    def unseen_prompt(self, prompt: str | None) -> str | None:
        """What to say of a task that the planner was not trained for; None of any other."""
        if prompt is None or self.known_prompts is None or prompt in self.known_prompts:
            return None
        nearest = difflib.get_close_matches(prompt, self.known_prompts, n=1)
        hint = f"; the nearest that it knows: {nearest[0]!r}" if nearest else ""
        return f"the planner was not trained for the task {prompt!r}, and may name subtasks of another one{hint}"


def metadata(config: ServeConfig, served: Served) -> dict[str, Any]:
    """The first frame of a connection: all that a client needs to know. Plain data."""
    robot = served.robot
    return {
        "server": "predimem",
        "protocol": PROTOCOL,
        "versions": {"predimem": predimem.__version__, "python": sys.version.split()[0], "numpy": np.__version__},
        "weights": dict(served.weights),
        "cameras": list(robot.cameras),
        "image_size": list(robot.image_size),
        "state_dim": robot.state_dim,
        "action_dim": robot.action_dim,
        "action_horizon": config.action_horizon,
        "control_hz": config.robot.control_hz,
        "example_prompt": config.robot.example_prompt,
        "time": config.time.mode,
        "memory": {
            "recent_window": served.memory.recent_window,
            "recent_stride_steps": served.memory.recent_stride_steps,
            "keyframes": served.memory.keyframes,
        },
        "limits": {
            "message_bytes": config.limits.message_bytes,
            "prompt_characters": config.limits.prompt_characters,
            "deadline_ms": config.limits.deadline_s * 1000,
        },
        "optional_fields": ["prompt", "episode_id", "reset", "step", "executed", "deadline_ms"],
    }


def make_hold(config: ServeConfig) -> Callable[[np.ndarray | None], np.ndarray]:
    """The robot's `hold_action`: float32 [A] that keeps it where it is, given the last action."""
    still, keeps = np.array(config.robot.hold, np.float32), list(config.robot.hold_keeps)

    def hold(last: np.ndarray | None) -> np.ndarray:
        action = still.copy()
        if last is not None:
            action[keeps] = last[keeps]
        return action

    return hold

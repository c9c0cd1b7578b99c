"""The metadata frame that openpi's protocol opens with: what a client has to send, and what it gets."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

import predimem
from predimem.serving.config import ServeConfig
from predimem.serving.request import FIELDS
from predimem.serving.robot import Served

PROTOCOL = 1  # raised when a field of a reply or of the metadata changes its meaning
TASKS = 100  # that are listed


def metadata(config: ServeConfig, served: Served) -> dict[str, Any]:
    """The first frame of a connection: all that a client needs to know. Plain data."""
    robot = served.robot
    return {
        "server": "predimem",
        "protocol": PROTOCOL,
        "versions": {"predimem": predimem.__version__, "python": sys.version.split()[0], "numpy": np.__version__},
        "weights": dict(served.weights),
        "cameras": list(robot.cameras),
        "optional_cameras": list(robot.optional_cameras),
        "image_size": list(robot.image_size),
        "state_dim": robot.state_dim,
        "action_dim": robot.action_dim,
        "action_horizon": config.action_horizon,
        "control_hz": config.robot.control_hz,
        "example_prompt": served.example_prompt(config.robot),
        "tasks": list(served.tasks.instructions[:TASKS]),
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
        "optional_fields": list(FIELDS),
    }

"""Subtasks as the language columns of LeRobot 0.6.

Each step has the whole list of its episode's subtasks, with the time at which each begins, in `language_persistent`;
`lerobot.datasets.language_render.active_at` finds the one that holds. `language_events`, which belongs to it, is
empty. LeRobot 0.4 cannot read a data set that has these columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from predimem.core.episodes import SubtaskSpan

PERSISTENT, EVENTS = "language_persistent", "language_events"
FEATURES: dict[str, Any] = {name: {"dtype": "language", "shape": [1], "names": None} for name in (PERSISTENT, EVENTS)}


def language_columns(subtasks: Sequence[SubtaskSpan], control_hz: float, steps: int) -> dict[str, Any]:
    """The two columns as arrays of Arrow's, each with `steps` rows."""
    import pyarrow

    def field(name: str) -> Any:
        return pyarrow.field(name, pyarrow.string())

    said = [field("role"), field("content"), field("style")]
    rest = [field("camera"), pyarrow.field("tool_calls", pyarrow.list_(pyarrow.string()))]
    persistent = pyarrow.struct([*said, pyarrow.field("timestamp", pyarrow.float32()), *rest])
    rows = [
        {
            "role": "assistant",
            "content": span.label,
            "style": "subtask",
            "timestamp": np.float32(span.start / control_hz),
            "camera": None,
            "tool_calls": None,
        }
        for span in subtasks
    ]
    return {
        PERSISTENT: pyarrow.array([rows] * steps, pyarrow.list_(persistent)),
        EVENTS: pyarrow.array([[]] * steps, pyarrow.list_(pyarrow.struct([*said, *rest]))),
    }

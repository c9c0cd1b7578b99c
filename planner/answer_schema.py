"""The JSON schema of an answer, for decoders that keep to one: a server's structured output, or our own."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from planner.parsing import FIELDS


def answer_schema(window: int, subtasks: Iterable[str] | None = None) -> dict[str, Any]:
    """The schema of what `planner.parsing.parse_answer` reads.

    window: how many timesteps the recent window shows; positions lie in 1..window.
    subtasks: those that may be named; None allows any non-empty string.
    """
    subtask, positions = FIELDS
    named: dict[str, Any] = {"type": "string", "minLength": 1}
    if subtasks is not None:
        named = {"type": "string", "enum": sorted(subtasks)}
    return {
        "type": "object",
        "properties": {
            subtask: named,
            positions: {
                "type": "array",
                "items": {"type": "integer", "minimum": 1, "maximum": window},
                "maxItems": window,
            },
        },
        "required": [subtask, positions],
        "additionalProperties": False,
    }

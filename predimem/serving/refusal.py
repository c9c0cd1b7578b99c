"""Why a request got no actions: a code for programs and metrics, a sentence for people."""

from __future__ import annotations

from typing import Literal

Code = Literal[
    "malformed",  # not the wire format, or not an observation of this robot
    "order",  # steps or episodes that contradict each other
    "unknown_task",  # the planner was not trained on it, and the server's config says that such tasks are refused
    "busy",  # the session's last request is still under way
    "overloaded",  # too many sessions, or too many observations wait for the actor
    "deadline",  # no actions in time
    "taken_over",  # another connection goes on with the episode
    "draining",  # the server is being shut down
    "internal",  # a fault of the server
]


class Refusal(Exception):
    """`str` is what the client is sent; it never holds paths, tracebacks or other clients' data."""

    def __init__(self, code: Code, message: str):
        super().__init__(f"{code}: {message}")
        self.code: Code = code
        self.why = message

"""What `predimem serve` refuses, and how long it waits for its clients."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True)
class LimitsConfig:
    """What is refused rather than queued. Sizes are in bytes, times in seconds.

    array_bytes: the size of one array or decoded image.
    prompt_characters: the length of a task.
    deadline_s: the time from a request's arrival to its reply; a client may ask for less.
    queued_s1: how many observations may wait for the actor.
    no_plan_s: the time without a new plan, beyond `agent.plan_every_steps`, after which replies say so in `planner`.
    idle_s: how long a session without requests is kept in memory.
    spare_s: how long it is safe from being evicted for a new one once its robot has gone, and is shown as live.
    bad_messages: faulty messages in a row after which a connection is closed.
    open_s: how long a client may take to say what it wants: for TLS, and then for the head of its request.
    stall_s: how long a message, a reply or a page may rest on its way, without a byte of it that moves. As long as
    bytes move it may take any time.
    drain_s: the time that SIGTERM leaves to requests under way.
    """

    FORMER_NAMES: ClassVar[dict[str, str]] = {"send_s": "stall_s"}

    connections: int = 64
    sessions: int = 32
    message_bytes: int = 8 << 20
    array_bytes: int = 4 << 20
    prompt_characters: int = 1000
    deadline_s: float = 2.0
    queued_s1: int = 64
    no_plan_s: float = 5.0
    idle_s: float = 900.0
    spare_s: float = 30.0
    bad_messages: int = 20
    open_s: float = 10.0
    stall_s: float = 10.0
    drain_s: float = 10.0

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if not value > 0:
                raise ValueError(f"limits: {name} has to be positive, got {value}")

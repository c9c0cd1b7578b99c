"""What practice needs of the system that it must not import: a planner, and the runtime in which it speaks."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from datagen.dagger.config import PracticeConfig
from predimem.core.interfaces import Agent, Planner, Policy


class PracticeAgent(Agent, Protocol):
    """The asynchronous runtime, as in an evaluation, with threads of its own, which `close` ends."""

    def close(self) -> None: ...


class Runtime(Protocol):
    """Makes what is concrete. Picklable: it is handed to the process that plays."""

    def planner(self) -> Planner | None:
        """The planner that speaks, loaded once in a process; None where the truth does."""
        ...

    def policy(self) -> Policy | None:
        """The learned actor that is the hand, loaded once in a process; None where that knows the true state."""
        ...

    def agent(self, voice: Planner, policy: Policy, hold: np.ndarray, config: PracticeConfig) -> PracticeAgent:
        """An agent that asks `voice` with the memory of `planner`, and does `hold` until there is an answer."""
        ...

"""Notes what somebody else carried in an episode.

Where it was put can be hidden later, as in a drawer, so a planner has to keep a frame that shows it being put down.
"""

from __future__ import annotations

from typing import Any

from datagen.dagger.faulty_policy import Event
from predimem.envs.arena.fixtures import DRAWERS, PLACES
from predimem.envs.arena.visits import Carry

CARRIED, INTO_DRAWER = "carried", "carried into a drawer"  # the kinds of events


class SeenVisits:
    """events: what was carried so far; each ends when the thing has been put down."""

    def __init__(self, env: Any):
        """env: an `ArenaEnv` of one world that has been reset."""
        self._env = env
        self._carried: Carry | None = None
        self._since = 0
        self.events: list[Event] = []

    def after_step(self, step: int) -> None:
        """To be called after each control step; step: how many there were."""
        visitor = self._env.visitor  # None where nobody comes
        before, self._carried = self._carried, None if visitor is None else visitor.carrying
        if before == self._carried:
            return
        if before is not None:
            kind = INTO_DRAWER if PLACES[before.place].frame in DRAWERS else CARRIED
            self.events.append(Event(kind, self._since, step))
        self._since = step

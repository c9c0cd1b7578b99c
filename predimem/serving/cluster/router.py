"""Which replica answers an episode: the one that did before; for a new one, consistent hashing."""

from __future__ import annotations

from functools import cache
from typing import Any

FALLBACKS = 8  # successors that are looked at where replicas died that the controller has not missed yet
SESSION_ROUTER = f"{__name__}.SessionRouter"


def __getattr__(name: str) -> type:
    """Ray Serve finds the class by its name, wherever requests are routed."""
    if name == "SessionRouter":
        return session_router()
    raise AttributeError(name)


@cache
def session_router() -> type:
    """A request router for Ray Serve (the class; made here because importing Ray takes seconds).

    Serve's own consistent hashing moves sessions to a replica that joins. Here a session stays where it is: its
    memory is there, and the frames of its recent window are nowhere else. A replica that dies or is drained is no
    candidate any more, so its sessions get another one.
    """
    from ray.serve.experimental.consistent_hash_router import ConsistentHashRouter

    class SessionRouter(ConsistentHashRouter):
        def initialize_state(self, **options: Any) -> None:
            self._remembered: int = options["sessions"]
            self._places: dict[str, Any] = {}  # session -> id of its replica, the last used one last
            super().initialize_state(num_fallback_replicas=FALLBACKS)

        async def choose_replicas(self, candidate_replicas: list[Any], pending_request: Any = None) -> list[list[Any]]:
            ranks = await super().choose_replicas(candidate_replicas, pending_request)
            session = pending_request.metadata.session_id if pending_request is not None else ""
            if not session or not ranks:
                return ranks
            there = {replica.replica_id: replica for replica in candidate_replicas}
            place = self._places.pop(session, None)
            replica = there[place] if place in there else ranks[0][0]
            self._places[session] = replica.replica_id
            while len(self._places) > self._remembered:
                del self._places[next(iter(self._places))]
            return [[replica]]

    return SessionRouter

"""Which session a request belongs to, and how many there may be."""

from __future__ import annotations

import secrets
import threading
import time
from dataclasses import dataclass
from typing import Any

from memory_bank.store import Outcome
from predimem.serving.limits import LimitsConfig
from predimem.serving.refusal import Refusal
from predimem.serving.request import Request
from predimem.serving.session import MakeSession, Session

ENDED = 1000  # episodes whose end is remembered, and so many whose memory was forgotten


class Client:
    """One connection: the session that it used last, and those that another connection took over."""

    def __init__(self) -> None:
        self.session: Session | None = None
        self.anonymous = False
        self.lost: set[str] = set()
        self.ended: Ended | None = None


@dataclass(frozen=True)
class Ended:
    """An episode that its robot has ended. step: of its last observation, None where it is not known any more."""

    episode_id: str
    step: int | None
    outcome: Outcome


class Sessions:
    """All sessions by episode. Thread-safe.

    A client that names its episodes (`episode_id`) may go on with them over another connection, which takes the
    session over; one that does not has an episode of its own for each connection and each `reset`.
    """

    def __init__(self, make: MakeSession, limits: LimitsConfig):
        self._make = make
        self._limits = limits
        self._lock = threading.Lock()
        self._sessions: dict[str, Session] = {}
        self._owners: dict[str, Client] = {}
        self._ended: dict[str, Ended] = {}
        self._forgotten: dict[str, None] = {}  # episodes whose memory is gone, though nobody has ended them

    def __len__(self) -> int:
        return len(self._sessions)

    def all(self) -> list[Session]:
        with self._lock:
            return list(self._sessions.values())

    def live(self) -> list[Session]:
        """Those that a robot plays, or has played a moment ago."""
        now = time.monotonic()
        with self._lock:
            return [session for session in self._sessions.values() if not self._is_spare(session, now)]

    def find(self, client: Client, request: Request) -> Session:
        """Raises Refusal: `taken_over`, `overloaded`, `order` for a session that has ended."""
        with self._lock:
            if request.episode_id is None:
                return self._anonymous(client, request)
            return self._named(client, request.episode_id, request.reset)

    def end(self, client: Client, episode_id: str | None, outcome: Outcome) -> tuple[Ended, bool] | None:
        """End an episode, that of the connection where none is named; (its end, whether it is the first one).

        None where no such episode is known here. Raises Refusal: `taken_over`, or `order` where a connection that
        names its episodes does not say which.
        """
        with self._lock:
            session = self._to_end(client, episode_id)
            if session is None:
                known = client.ended if episode_id is None else self._ended.get(episode_id)
                return None if known is None else (known, False)
            ended = Ended(session.episode_id, session.last_step, outcome)
            client.ended = self._ended[ended.episode_id] = ended
            _bound(self._ended)
            self._remove(session)
            if client.session is session:
                client.session = None
        session.close()
        return ended, True

    def _to_end(self, client: Client, episode_id: str | None) -> Session | None:
        if episode_id is None:
            if client.session is not None and not client.anonymous:
                raise Refusal("order", "which episode is done? This connection names its own: send episode_id")
            return client.session
        if episode_id in client.lost:
            raise Refusal("taken_over", "another connection goes on with this episode")
        return self._sessions.get(episode_id)

    def leave(self, client: Client) -> None:
        """The connection is closed; its session stays for a while, for the next one."""
        with self._lock:
            for episode_id in [e for e, owner in self._owners.items() if owner is client]:
                del self._owners[episode_id]
            client.session = None

    def drop(self, session: Session) -> None:
        """Forget a session, such as one whose first request was refused."""
        with self._lock:
            owner = self._owners.get(session.episode_id)
            if owner is not None and owner.session is session:
                owner.session = None
            self._remove(session)
        session.close()

    def refresh(self, episode_id: str) -> None:
        """Before a connection goes on with an episode: forget what another server has gone on with since."""
        session = self._sessions.get(episode_id)
        if session is not None and not session.is_ours():
            self.drop(session)

    def expire(self) -> int:
        """Close what has been idle for too long; how many those were."""
        now = time.monotonic()
        with self._lock:
            old = [s for s in self._sessions.values() if now - s.used_s > self._limits.idle_s]
            for session in old:
                self._forget(session)
        for session in old:
            session.close()
        return len(old)

    def close(self) -> None:
        with self._lock:
            sessions, self._sessions = list(self._sessions.values()), {}
            self._owners.clear()
        for session in sessions:
            session.close()

    def _anonymous(self, client: Client, request: Request) -> Session:
        session = client.session
        if session is not None and session.closed and not request.reset:
            raise Refusal("order", "the session has expired; send reset: true to begin again")
        if session is None or not client.anonymous or self._is_new_episode(session, request):
            if session is not None and client.anonymous:
                self._close_beside(session)  # nobody knows its name, so that nobody goes on with it
            session = self._add(client, secrets.token_hex(8))
            client.anonymous = True
        return session

    def _is_new_episode(self, session: Session, request: Request) -> bool:
        """Without episode ids: `reset`, another task, or step 0 again."""
        again = request.step == 0 and (session.last_step or 0) > 0
        other = request.prompt is not None and session.begun and request.prompt != session.instruction
        return request.reset or again or other

    def _named(self, client: Client, episode_id: str, reset: bool) -> Session:
        if reset:
            client.lost.discard(episode_id)
            self._ended.pop(episode_id, None)
            self._forgotten.pop(episode_id, None)
        elif (ended := self._ended.get(episode_id)) is not None:
            raise Refusal("order", f"this episode has ended ({ended.outcome}); send reset: true to begin it again")
        elif episode_id in client.lost:
            raise Refusal("taken_over", "another connection goes on with this episode")
        elif episode_id in self._forgotten:
            raise Refusal("order", "the session has expired; send reset: true to begin again")
        session = self._sessions.get(episode_id)
        if session is None or session.closed:
            session = self._add(client, episode_id)
        elif (owner := self._owners.get(episode_id)) is not client:
            if owner is not None:
                owner.lost.add(episode_id)
            self._owners[episode_id] = client
        client.session, client.anonymous = session, False
        return session

    def _add(self, client: Client, episode_id: str) -> Session:
        if len(self._sessions) >= self._limits.sessions:
            self._make_room()
        session = self._make(episode_id)
        self._sessions[episode_id] = session
        self._owners[episode_id] = client
        client.session = session
        return session

    def _make_room(self) -> None:
        """End the session that nobody has used for longest, unless all are in use."""
        now = time.monotonic()
        spare = [s for s in self._sessions.values() if self._is_spare(s, now)]
        if not spare:
            raise Refusal("overloaded", f"all {self._limits.sessions} sessions are in use; try again later")
        oldest = min(spare, key=lambda s: s.used_s)
        self._forget(oldest)
        self._close_beside(oldest)

    def _close_beside(self, session: Session) -> None:
        """Not in this thread, which holds the lock of all sessions."""
        self._remove(session)
        threading.Thread(target=session.close, name="close-session", daemon=True).start()

    def _is_spare(self, session: Session, now: float) -> bool:
        owner = self._owners.get(session.episode_id)
        in_use = owner is not None and owner.session is session
        return not in_use and now - session.used_s > self._limits.spare_s

    def _forget(self, session: Session) -> None:
        """Remove one that its robot may ask for again. What a store keeps can be gone on with."""
        if not session.stored:
            self._forgotten[session.episode_id] = None
            _bound(self._forgotten)
        self._remove(session)

    def _remove(self, session: Session) -> None:
        if self._sessions.get(session.episode_id) is session:
            del self._sessions[session.episode_id]
            self._owners.pop(session.episode_id, None)


def _bound(remembered: dict[str, Any]) -> None:
    while len(remembered) > ENDED:
        del remembered[next(iter(remembered))]

"""One replica: an actor, a planner, and the sessions that they serve, in a process that Ray Serve looks after."""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from predimem.serving.command import SWITCH_S
from predimem.serving.config import ServeConfig
from predimem.serving.engine import Engine, status
from predimem.serving.http_reply import Page
from predimem.serving.logs import log_as_json
from predimem.serving.memory import settle, share_heap, trim
from predimem.serving.pages import page
from predimem.serving.refusal import Refusal
from predimem.serving.robot import Served
from predimem.serving.sessions import Client

SWEEP_S = 5.0


def with_own_log(config: ServeConfig, replica: str) -> ServeConfig:
    """The log of a replica's planner lies in a folder of its own below the state folder, if there is one.

    With a database alone there is none: then the log is in a temporary folder of the replica's machine.
    """
    folder = config.state.folder
    if folder is None or config.s2_process.log_dir is not None:
        return config
    logs = Path(folder) / "log" / replica
    return replace(config, s2_process=replace(config.s2_process, log_dir=str(logs)))


class Answer(NamedTuple):
    """reply: what the robot is sent, or None where it was refused: then `code` and `why` are those of `Refusal`."""

    replica: str
    reply: bytes | None
    code: str = ""
    why: str = ""


class Replica:
    """The constructor returns when both models are warm. Serve gives requests to a replica only then."""

    def __init__(self, config: ServeConfig, make_served: Callable[[], Served]):
        from ray import serve

        log_as_json()
        share_heap()
        sys.setswitchinterval(SWITCH_S)
        self._name: str = serve.get_replica_context().replica_id.unique_id
        self._engine = Engine(with_own_log(config, self._name), make_served())
        self._engine.start()
        settle()
        self._idle_s = config.limits.idle_s
        self._clients: dict[str, tuple[Client, float]] = {}  # when it was last heard of
        self._lock = threading.Lock()
        self._threads = ThreadPoolExecutor(config.limits.connections + 4, thread_name_prefix="request")
        self._stop = threading.Event()
        threading.Thread(target=self._sweep, name="sweep", daemon=True).start()

    async def answer(
        self, client: str, episode_id: str | None, goes_on: bool, message: bytes, waited_s: float
    ) -> Answer:
        """One observation. client: a connection of a gateway; goes_on: it had replies in this episode before;
        waited_s: how long ago the message arrived at the gateway.
        """
        return await self._in_thread(self._answer, client, episode_id, goes_on, message, time.monotonic() - waited_s)

    async def leave(self, client: str) -> None:
        """The connection is closed, or goes on with another episode."""
        await self._in_thread(self._leave, client)

    async def metadata(self) -> dict[str, Any]:
        return self._engine.metadata

    async def report(self) -> dict[str, Any]:
        """Health and sessions, as `/status.json` shows them, and the pid for those who watch."""
        import os

        shown = await self._in_thread(status, self._engine)
        return {"replica": self._name, "pid": os.getpid(), **shown}

    async def page(self, path: str) -> tuple[str, Page]:
        """(name of this replica, what it shows under this path)."""
        return self._name, await self._in_thread(page, self._engine, path)

    async def check_health(self) -> None:
        """Asked by Serve, which replaces a replica whose actor hangs. A planner that is lost is restarted here."""
        ready, why = self._engine.health()
        if not ready:
            raise RuntimeError(why)

    def __del__(self) -> None:
        if hasattr(self, "_stop"):
            self._stop.set()
            self._engine.close()

    async def _in_thread(self, work: Callable[..., Any], *arguments: Any) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self._threads, work, *arguments)

    def _answer(self, name: str, episode_id: str | None, goes_on: bool, message: bytes, arrived_s: float) -> Answer:
        with self._lock:
            known = self._clients.get(name)
            if known is None and goes_on and episode_id is None:
                return Answer(
                    self._name, None, "order", "the replica of this episode was lost; send reset: true to begin again"
                )
            client = Client() if known is None else known[0]
            self._clients[name] = client, time.monotonic()
        session = client.session
        if episode_id is not None and (session is None or session.episode_id != episode_id):
            self._engine.sessions.refresh(episode_id)
        try:
            return Answer(self._name, self._engine.handle(client, message, arrived_s))
        except Refusal as refusal:
            return Answer(self._name, None, refusal.code, refusal.why)

    def _leave(self, name: str) -> None:
        with self._lock:
            known = self._clients.pop(name, None)
        if known is not None:
            self._engine.leave(known[0])

    def _sweep(self) -> None:
        """A gateway that died told nobody that its connections are gone."""
        while not self._stop.wait(SWEEP_S):
            self._engine.expire()
            until_s = time.monotonic() - self._idle_s
            with self._lock:
                old = [name for name, (_, heard_s) in self._clients.items() if heard_s < until_s]
            for name in old:
                self._leave(name)
            trim()

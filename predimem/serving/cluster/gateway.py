"""The end of a cluster that robots see: one port, any number of replicas behind it.

A gateway keeps no memory. It reads which episode a message belongs to and hands the message, as it came, to the
replica of that episode. Several gateways may stand before the same replicas.
"""

from __future__ import annotations

import logging
import secrets
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, cast

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from predimem.serving import wire
from predimem.serving.accounts import accounted
from predimem.serving.cluster.replica import Answer
from predimem.serving.config import ServeConfig
from predimem.serving.metrics import MILLISECONDS
from predimem.serving.refusal import Code, Refusal
from predimem.serving.request import read_id

log = logging.getLogger(__name__)
REPORT_S = 1.0
ASK_S = 5.0  # how long replicas may take for what people and load balancers ask


class GatewayMetrics:
    """Of the gateway; what replicas count is theirs, and labelled with their names (`shown.py`)."""

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        name = "predimem_gateway"
        self.reply = Histogram(
            f"{name}_reply_seconds", "From a request's arrival to its reply", registry=registry, buckets=MILLISECONDS
        )
        self.rejected = Counter(f"{name}_rejected", "Requests without actions", ["code"], registry=registry)
        self.handshakes_refused = Counter(f"{name}_handshakes_refused", "Connections", ["status"], registry=registry)
        self.moved = Counter(f"{name}_moved", "Episodes that went on at another replica", registry=registry)
        self.ready = Gauge(f"{name}_ready", "1 while there is a replica that answers", registry=registry)
        self.replicas = Gauge(f"{name}_replicas", "Replicas that answer", registry=registry)


@dataclass(eq=False)
class Connection:
    """One robot's connection. key: what its episode is routed by; replica: who answered last."""

    name: str = field(default_factory=lambda: secrets.token_hex(8))
    key: str | None = None
    handle: Any = None
    replica: str | None = None


class Gateway:
    """A `Backend` of the server. deploy: starts the replicas and gives their handle; blocks until they are warm."""

    def __init__(self, config: ServeConfig, deploy: Callable[[], Any]):
        self.config = config
        self.metrics = GatewayMetrics()
        self.metadata: dict[str, Any] = {}
        self.draining = False
        self.warm = False
        self.replicas: Any = None
        self._deploy = deploy
        self._reports: list[dict[str, Any]] = []
        self._stop = threading.Event()
        self.metrics.ready.set_function(lambda: self.health()[0])
        self.metrics.replicas.set_function(lambda: len(self._reports))

    def start(self) -> None:
        """Raises ValueError where the replicas cannot be started."""
        began_s = time.perf_counter()
        self.replicas = self._deploy()
        self.metadata = self.replicas.metadata.remote().result(timeout_s=60)
        self._look()
        threading.Thread(target=self._watch, name="watch", daemon=True).start()
        self.warm = True
        log.info("ready", extra={"warm_up_s": round(time.perf_counter() - began_s, 2), "replicas": len(self._reports)})

    def connect(self) -> Connection:
        return Connection()

    def leave(self, client: Connection) -> None:
        if client.handle is not None:
            client.handle.leave.remote(client.name)

    def expire(self) -> int:
        """Replicas look after their sessions themselves."""
        return 0

    def handle(self, client: Connection, data: bytes, arrived_s: float) -> bytes:
        """The reply of the episode's replica. Raises Refusal."""
        with accounted(self.metrics, arrived_s):
            return self._answer(client, data, arrived_s)

    def health(self) -> tuple[bool, str]:
        """(ready to serve, what is the matter)."""
        if not self.warm:
            return False, "warming up"
        if self.draining:
            return False, "draining"
        reports, expected = self._reports, self.config.cluster.replicas
        ready = [report for report in reports if report["ready"]]
        if not ready:
            return False, "no replica answers"
        if len(ready) < expected:
            return True, f"degraded: {len(ready)} of {expected} replicas"
        trouble = next((report["state"] for report in ready if report["state"] != "ok"), None)
        return True, trouble or "ok"

    def reports(self) -> list[dict[str, Any]]:
        """What each replica says of itself, at most a second or two ago."""
        return self._reports

    def ask_all(self, method: str, *arguments: Any) -> list[Any]:
        """What all replicas answer; those that do not are left out."""
        answers = self.replicas.broadcast(method, *arguments).results(timeout_s=ASK_S, return_exceptions=True)
        return [answer for answer in answers if not isinstance(answer, BaseException)]

    def close(self) -> None:
        self.draining = True
        self._stop.set()

    def _answer(self, client: Connection, data: bytes, arrived_s: float) -> bytes:
        if self.draining:
            raise Refusal("draining", "the server is being shut down; connect again")
        try:
            message = wire.unpack(data, self.config.limits.array_bytes)
        except wire.WireError as error:
            raise Refusal("malformed", str(error)) from None
        if not isinstance(message, dict):
            raise Refusal("malformed", f"expected a map of observations, got {type(message).__name__}")
        episode_id = read_id("episode_id", message.get("episode_id"))
        self._turn_to(client, episode_id or f"~{client.name}")  # no episode is called so
        goes_on = client.replica is not None and message.get("reset") is not True
        answer = self._ask(client, episode_id, goes_on, data, arrived_s)
        if answer.reply is None:
            raise Refusal(cast(Code, answer.code), answer.why)
        if client.replica not in (None, answer.replica):
            self.metrics.moved.inc()
            log.warning("episode goes on at another replica", extra={"episode_id": episode_id})
        client.replica = answer.replica
        return answer.reply

    def _turn_to(self, client: Connection, key: str) -> None:
        if client.key == key:
            return
        self.leave(client)
        client.key, client.replica = key, None
        client.handle = self.replicas.options(session_id=key)

    def _ask(self, client: Connection, episode_id: str | None, goes_on: bool, data: bytes, arrived_s: float) -> Answer:
        """A replica that died with the request has not answered it, so another one is asked: it reads the episode's
        memory from the store. One that cannot be reached may have answered, and asking again is the client's choice."""
        from ray.exceptions import ActorDiedError
        from ray.serve.exceptions import BackPressureError

        until_s = arrived_s + self.config.limits.deadline_s
        while True:
            waited_s = time.monotonic() - arrived_s
            asked = client.handle.answer.remote(client.name, episode_id, goes_on, data, waited_s)
            try:
                return asked.result(timeout_s=max(0.0, until_s - time.monotonic()))
            except ActorDiedError:
                log.warning("a replica died with a request", extra={"episode_id": episode_id})
            except TimeoutError:
                asked.cancel()
                raise Refusal("deadline", "no replica answered in time") from None
            except BackPressureError:
                raise Refusal("overloaded", "too many requests wait for the replicas; ask again later") from None

    def _watch(self) -> None:
        while not self._stop.wait(REPORT_S):
            self._look()

    def _look(self) -> None:
        try:
            self._reports = sorted(self.ask_all("report"), key=lambda report: report["replica"])
        except Exception:  # the cluster may be going down, or be on its way back
            if not self._stop.is_set():
                log.exception("the replicas cannot be asked")
            self._reports = []

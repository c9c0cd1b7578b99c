"""The network: openpi's protocol over websockets, and a few HTTP paths, on one port.

On connection the server sends its metadata. Then each binary message is an observation, answered by a binary message
(a reply) or a text message (why there is none, as openpi does), in order, one at a time. The connection stays open
after an error unless its client sends nothing but faults.
"""

from __future__ import annotations

import asyncio
import http
import logging
import signal
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol

from websockets.asyncio.server import Server, ServerConnection, serve
from websockets.datastructures import Headers
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response

from predimem.serving import wire
from predimem.serving.access import Access, tls_context
from predimem.serving.config import ServeConfig
from predimem.serving.http_reply import TEXT, Page
from predimem.serving.memory import trim
from predimem.serving.pages import open_page, page
from predimem.serving.refusal import Refusal

log = logging.getLogger(__name__)
GRACE_S = 0.25  # beyond the deadline, for what is already on its way back
EXPIRE_EVERY_S = 5.0
OpenPage = Callable[[Any, str], Page | None]
ShowPage = Callable[[Any, str], Page]


class Backend(Protocol):
    """What a server puts on the network: an `Engine`, or the replicas of a cluster."""

    config: ServeConfig
    metadata: dict[str, Any]
    metrics: Any  # with the counters `rejected` and `handshakes_refused`
    warm: bool
    draining: bool

    def connect(self) -> Any: ...

    def handle(self, client: Any, data: bytes, arrived_s: float) -> bytes: ...

    def leave(self, client: Any) -> None: ...

    def expire(self) -> int: ...


class PolicyServer:
    """Serves one backend until `stop` or a signal. `port` is known after `start`."""

    def __init__(self, engine: Backend, open_page: OpenPage = open_page, page: ShowPage = page):
        self._engine = engine
        self._limits = engine.config.limits
        self._access = Access(engine.config)
        self._tls = tls_context(engine.config.access)
        self._open_page, self._page = open_page, page
        self._threads = ThreadPoolExecutor(self._limits.connections + 4, thread_name_prefix="request")
        self._connections = 0
        self._busy: set[ServerConnection] = set()
        self._stopping = asyncio.Event()
        self._server: Server | None = None
        self.port = 0

    async def start(self) -> None:
        """Listen, and heed SIGTERM and SIGINT. Clients that come while the models warm up get their metadata when they
        are warm.

        Raises ValueError for an address that cannot be listened on.
        """
        config, loop = self._engine.config, asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.stop)
        try:
            self._server = await serve(
                self._serve,
                config.host,
                config.port,
                process_request=self._process_request,
                ssl=self._tls,
                compression=None,
                max_size=self._limits.message_bytes,
                max_queue=2,
                server_header=None,
                open_timeout=10,
                close_timeout=2,
                ping_interval=20,
                ping_timeout=20,
                logger=_quiet_logger(),
            )
        except OSError as error:
            raise ValueError(f"cannot listen on {config.host} port {config.port}: {error.strerror}") from error
        self.port = next(iter(self._server.sockets)).getsockname()[1]
        log.info("listening", extra={"host": config.host, "port": self.port, "tls": self._tls is not None})

    async def run(self) -> None:
        """Until `stop`, SIGTERM or SIGINT; then drain: requests under way are answered, new ones refused."""
        loop = asyncio.get_running_loop()
        expiry = asyncio.create_task(self._expire())
        await self._stopping.wait()
        expiry.cancel()
        await self._drain()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(number)

    def stop(self) -> None:
        self._engine.draining = True
        self._stopping.set()

    async def _drain(self) -> None:
        log.info("draining", extra={"under_way": len(self._busy)})
        assert self._server is not None
        self._server.close(close_connections=False)
        until = time.monotonic() + self._limits.drain_s
        while self._busy and time.monotonic() < until:
            await asyncio.sleep(0.02)
        for connection in list(self._server.connections):
            await connection.close(1001, "the server is being shut down")
        await self._server.wait_closed()
        self._threads.shutdown(wait=False, cancel_futures=True)
        log.info("drained", extra={"cut_short": len(self._busy)})

    async def _process_request(self, connection: ServerConnection, request: Request) -> Response | None:
        path = request.path.partition("?")[0]
        plain = "Upgrade" not in request.headers
        if (plain or path != "/") and (found := self._open_page(self._engine, path)) is not None:
            return _response(found)
        refused = self._access.refusal(request.headers)
        if refused is None and plain:
            loop = asyncio.get_running_loop()
            return _response(await loop.run_in_executor(self._threads, self._page, self._engine, path))
        if refused is None:
            if path != "/":
                refused = 404, "robots connect to /"
            elif self._engine.draining:
                refused = 503, "the server is being shut down"
            elif self._connections >= self._limits.connections:
                refused = 503, f"all {self._limits.connections} connections are in use"
            else:
                return None
        number, why = refused
        self._engine.metrics.handshakes_refused.labels(str(number)).inc()
        response = _response(Page(number, TEXT, f"{why}\n".encode()))
        if number == 401:
            response.headers["WWW-Authenticate"] = 'Basic realm="predimem", charset="UTF-8"'
        return response

    async def _serve(self, connection: ServerConnection) -> None:
        client = self._engine.connect()
        self._connections += 1
        peer = {"connection": str(connection.id)}
        log.info("connected", extra=peer)
        try:
            while not self._engine.warm:  # openpi's client waits for the metadata as long as it takes
                await asyncio.sleep(0.1)
            await self._send(connection, wire.pack(self._engine.metadata))
            await self._answer_all(connection, client)
        except ConnectionClosed:
            pass
        finally:
            self._connections -= 1
            self._engine.leave(client)
            log.info("disconnected", extra=peer)

    async def _answer_all(self, connection: ServerConnection, client: Any) -> None:
        faults = 0
        async for message in connection:
            self._busy.add(connection)
            try:
                reply = await self._answer(client, message)
                faults = 0
            except Refusal as refusal:
                faults = faults + 1 if refusal.code == "malformed" else 0
                reply = str(refusal)
            try:
                await self._send(connection, reply)
            finally:
                self._busy.discard(connection)
            if faults >= self._limits.bad_messages:
                await connection.close(1008, "too many faulty messages in a row")
                return

    async def _answer(self, client: Any, message: str | bytes) -> bytes:
        """Raises Refusal. A request that outlives its deadline goes on in its thread; its session is busy till then."""
        arrived_s = time.monotonic()
        if isinstance(message, str):
            self._engine.metrics.rejected.labels("malformed").inc()
            raise Refusal("malformed", "expected a binary message (msgpack), got text")
        loop = asyncio.get_running_loop()
        future = loop.run_in_executor(self._threads, self._engine.handle, client, message, arrived_s)
        done, _ = await asyncio.wait([future], timeout=self._limits.deadline_s + GRACE_S)
        if not done:
            future.add_done_callback(lambda f: f.cancelled() or f.exception())  # its end interests nobody any more
            self._engine.metrics.rejected.labels("deadline").inc()
            raise Refusal("deadline", "no answer in time")
        try:
            return future.result()
        finally:
            del future, done  # this frame is in a refusal's traceback: they would hold each other, and the message

    async def _send(self, connection: ServerConnection, message: str | bytes) -> None:
        """A client that does not read is dropped: it would hold its replies in memory."""
        try:
            async with asyncio.timeout(self._limits.send_s):
                await connection.send(message)
        except TimeoutError:
            connection.transport.abort()

    async def _expire(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(EXPIRE_EVERY_S)
            expired = await loop.run_in_executor(self._threads, self._engine.expire)
            await loop.run_in_executor(self._threads, trim)
            if expired:
                log.info("sessions expired", extra={"count": expired})


def _response(shown: Page) -> Response:
    headers = {
        "Content-Type": shown.content_type,
        "Content-Length": str(len(shown.body)),
        "Connection": "close",
        "Cache-Control": "no-store",
        "Cross-Origin-Resource-Policy": "same-origin",  # pages of others may not show our images either
        "Referrer-Policy": "no-referrer",
        "X-Content-Type-Options": "nosniff",
    } | dict(shown.headers)
    return Response(shown.status, http.HTTPStatus(shown.status).phrase, Headers(headers), shown.body)


def _quiet_logger() -> logging.Logger:
    """The library logs a traceback for each handshake of a port scanner."""
    logger = logging.getLogger("predimem.serving.websockets")
    logger.setLevel(logging.CRITICAL)
    return logger

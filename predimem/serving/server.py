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
from functools import partial
from typing import Any, Protocol

from websockets.asyncio.server import Server, serve
from websockets.datastructures import Headers
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response
from websockets.protocol import State

from predimem.serving import wire
from predimem.serving.access import Access, tls_context
from predimem.serving.config import ServeConfig
from predimem.serving.http_reply import TEXT, Page
from predimem.serving.memory import trim
from predimem.serving.pages import open_page, page
from predimem.serving.refusal import Refusal
from predimem.serving.transfers import CLOSE_S, PING_S, Connection

log = logging.getLogger(__name__)
GRACE_S = 0.25  # beyond the deadline, for what is already on its way back
EXPIRE_EVERY_S = 5.0
FLUSH_S = 3600.0  # for the end of a page over TLS, whose transfer may be slow
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
        self._everyone: set[Connection] = set()  # those that ask for pages as well
        self._busy: set[Connection] = set()
        self._stopping = asyncio.Event()
        self._server: Server | None = None
        self.port = 0

    async def start(self) -> None:
        """Listen, and heed SIGTERM and SIGINT. Clients that come while the models warm up get their metadata when they
        are warm.

        Raises ValueError for an address that cannot be listened on.
        """
        config, loop = self._engine.config, asyncio.get_running_loop()
        # The library's limits are of whole transfers; `Connection` has its own.
        ours: dict[str, Any] = {"create_connection": partial(Connection, limits=self._limits, everyone=self._everyone)}
        if self._tls:
            ours |= {"ssl_handshake_timeout": self._limits.open_s, "ssl_shutdown_timeout": FLUSH_S}
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.stop)
        try:
            self._server = await serve(
                self._serve,  # type: ignore[arg-type]  # of the connections that we create
                config.host,
                config.port,
                process_request=self._process_request,  # type: ignore[arg-type]
                ssl=self._tls,
                compression=None,
                max_size=self._limits.message_bytes,
                max_queue=2,
                server_header=None,
                open_timeout=None,
                close_timeout=CLOSE_S,
                ping_interval=PING_S,
                ping_timeout=None,
                logger=_quiet_logger(),
                **ours,
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
        cut_short = len(self._busy)
        for connection in list(self._everyone):
            if connection.state is State.OPEN:
                await connection.close(1001, "the server is being shut down")
            else:
                connection.transport.abort()
        await self._server.wait_closed()
        self._threads.shutdown(wait=False, cancel_futures=True)
        log.info("drained", extra={"cut_short": cut_short})

    async def _process_request(self, connection: Connection, request: Request) -> Response | None:
        self._busy.add(connection)
        try:
            response = await self._response(connection, request)
            if response is not None:
                await connection.answer(response)
            return response  # has been sent
        finally:
            self._busy.discard(connection)

    async def _response(self, connection: Connection, request: Request) -> Response | None:
        """None for a robot, which may connect."""
        path = request.path.partition("?")[0]
        plain = "Upgrade" not in request.headers
        if (plain or path != "/") and (found := self._open_page(self._engine, path)) is not None:
            return _response(found)
        refused = self._access.refusal(request.headers)
        if refused is None and plain:
            return _response(await self._made(connection, request.path))
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

    async def _made(self, connection: Connection, path: str) -> Page:
        """A page that is made in a thread, and takes as long as it takes; it is not waited for once its client left."""
        made = asyncio.get_running_loop().run_in_executor(self._threads, self._page, self._engine, path)
        await asyncio.wait([made, connection.connection_lost_waiter], return_when=asyncio.FIRST_COMPLETED)
        if made.done():
            return made.result()
        made.add_done_callback(lambda f: f.cancelled() or f.exception())
        return Page(503, TEXT, b"the client has left\n")

    async def _serve(self, connection: Connection) -> None:
        client = self._engine.connect()
        self._connections += 1
        peer = {"connection": str(connection.id)}
        log.info("connected", extra=peer)
        try:
            while not self._engine.warm:  # openpi's client waits for the metadata as long as it takes
                if self._engine.draining:
                    return
                await asyncio.sleep(0.1)
            await connection.send(wire.pack(self._engine.metadata))
            await self._answer_all(connection, client)
        except ConnectionClosed:
            pass
        finally:
            self._connections -= 1
            self._engine.leave(client)
            log.info("disconnected", extra=peer)

    async def _answer_all(self, connection: Connection, client: Any) -> None:
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
                await connection.send(reply)
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

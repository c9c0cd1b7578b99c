"""Connections whose transfers may be slow but may not stall.

A message, a reply or a file may take any time while its bytes move. A client that says nothing when it has connected,
or that stops in the middle of a transfer, loses its connection, and is told why where it can still be told.
"""

from __future__ import annotations

import asyncio
import fcntl
import logging
import socket
import struct
import termios
from collections.abc import Iterable
from contextlib import suppress
from http import HTTPStatus
from typing import Any

from websockets.asyncio.server import ServerConnection
from websockets.frames import CloseCode, Frame, Opcode
from websockets.http11 import Response
from websockets.protocol import Event, State

from predimem.serving.limits import LimitsConfig

log = logging.getLogger(__name__)
PING_S = 20.0  # a robot that neither sends anything nor answers two pings is gone
CLOSE_S = 2.0  # for the other side to end a connection in which all has been said
LOOKS = 8  # within each limit
PIECE = 1 << 16
RESET = struct.pack("ii", 1, 0)  # SO_LINGER: what was not taken is dropped, and the client sees an error, not an end


class Connection(ServerConnection):
    """One client of the server, from its first byte to its last.

    limits: `open_s` and `stall_s` hold here.
    everyone: the server's connections; this one is among them while it lasts.
    """

    def __init__(self, *args: Any, limits: LimitsConfig, everyone: set[Connection], **options: Any):
        super().__init__(*args, **options)
        self._limits, self._everyone = limits, everyone
        self._look_every_s = min(limits.open_s, limits.stall_s) / LOOKS
        self._timer: asyncio.TimerHandle | None = None
        self._began_s = self._received_s = self._sent_s = self._look_at_s = self.loop.time()
        self._begun_bytes = 0  # of a frame that is not whole yet
        self._in_fragments = False  # between the frames of one message
        self._answering = self._all_said = False  # with an HTTP response, until the connection ends
        self._on_its_way = (0, 0)  # see `_waiting`

    async def answer(self, response: Response) -> None:
        """Send an HTTP response as fast as the client takes it; returns when the connection is over."""
        if self.state is State.CONNECTING:  # the client has not gone meanwhile
            self._answering = True
            self.protocol.send_response(response)
            with suppress(OSError):
                await self._write_all(self.protocol.data_to_send())
        await asyncio.shield(self.connection_lost_waiter)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._everyone.add(self)
        self._began_s = self._received_s = self._sent_s = self.loop.time()
        self._look_later(self._began_s)

    def connection_lost(self, exc: Exception | None) -> None:
        self._everyone.discard(self)
        if self._timer is not None:
            self._timer.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._received_s = self.loop.time()
        if self.request is not None:
            self._begun_bytes += len(data)
        super().data_received(data)

    def process_event(self, event: Event) -> None:
        if isinstance(event, Frame):
            self._begun_bytes = max(0, self._begun_bytes - _bytes_on_the_wire(event))
            if event.opcode in (Opcode.TEXT, Opcode.BINARY, Opcode.CONT):
                self._in_fragments = not event.fin
        super().process_event(event)

    def _look(self) -> None:
        """Whether anything has stalled; a few times within each limit, as long as the connection lasts."""
        now, limits = self.loop.time(), self._limits
        self._forgive(now, now - self._look_at_s)
        self._look_later(now)
        waiting = self._waiting()
        if waiting != self._on_its_way or not (self._answering or waiting[0]):
            self._on_its_way, self._sent_s = waiting, now
        if not self.transport.is_reading():  # it is we who do not read
            self._received_s = now
        silent_s = now - self._received_s
        if self.request is None and now - self._began_s >= limits.open_s:
            why = f"no request came within {limits.open_s:g} s (limits.open_s)\n"
            self.protocol.send_response(self.protocol.reject(HTTPStatus.REQUEST_TIMEOUT, why))
            self._part("no request")
        elif self._all_said and waiting == (0, 0) and now - self._sent_s >= CLOSE_S:  # the client has all of it
            self.transport.abort()
        elif now - self._sent_s >= limits.stall_s:
            self._drop(sum(waiting))
        elif self.state is State.OPEN and (self._begun_bytes or self._in_fragments) and silent_s >= limits.stall_s:
            why = f"the message stopped in the middle: no byte for {limits.stall_s:g} s (limits.stall_s)"
            self.protocol.fail(CloseCode.POLICY_VIOLATION, why)
            self._part("upload stalled")
        elif self.state is State.OPEN and silent_s >= 2 * PING_S:
            self.protocol.fail(CloseCode.INTERNAL_ERROR, "keepalive ping timeout")
            self._part("no pong")

    def _look_later(self, now: float) -> None:
        self._look_at_s = now + self._look_every_s
        self._timer = self.loop.call_at(self._look_at_s, self._look)

    def _forgive(self, now: float, late_s: float) -> None:
        """Time in which this process stood still is not held against a client, whose bytes may not have come in yet."""
        self._began_s = min(now, self._began_s + late_s)
        self._received_s = min(now, self._received_s + late_s)
        self._sent_s = min(now, self._sent_s + late_s)

    def _waiting(self) -> tuple[int, int]:
        """Bytes that wait to leave this process, and those of the system that the client's has not acknowledged; the
        latter matter only where the former or a response are under way."""
        size = self.transport.get_write_buffer_size()
        return (size, _unacknowledged(self.transport)) if size or self._answering else (0, 0)

    def _part(self, event: str) -> None:
        """Send the last words, and close at once where they are not heard."""
        log.info(event, extra={"connection": str(self.id)})
        self.send_data()
        self._stop_looking()
        self._timer = self.loop.call_later(CLOSE_S, self.transport.abort)

    def _drop(self, waiting: int) -> None:
        """The client takes nothing, so that it cannot be told anything either."""
        path = None if self.request is None else self.request.path.partition("?")[0]
        facts = {"connection": str(self.id), "path": path, "bytes_left": waiting, "stall_s": self._limits.stall_s}
        log.warning("download stalled", extra=facts)
        with suppress(OSError):
            self.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        self._stop_looking()
        self.transport.abort()

    def _stop_looking(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    async def _write_all(self, parts: Iterable[bytes]) -> None:
        """Piece by piece, so that a page does not lie in the transport's buffer; then the client may end, too."""
        for data in parts:
            for start in range(0, len(data), PIECE):
                self.transport.write(data[start : start + PIECE])
                await self.drain()
                if self.transport.is_closing():
                    return
        self._all_said, self._sent_s = True, self.loop.time()
        if self.transport.can_write_eof():
            self.transport.write_eof()
        else:  # TLS
            self.transport.close()


def _bytes_on_the_wire(frame: Frame) -> int:
    """Of a frame of a client: two bytes, the rest of its length, its mask, and its data."""
    size = len(frame.data)
    return 2 + (0 if size < 126 else 2 if size < 1 << 16 else 8) + 4 + size


def _unacknowledged(transport: asyncio.BaseTransport) -> int:
    """0 where the system does not say."""
    try:
        told = fcntl.ioctl(transport.get_extra_info("socket").fileno(), termios.TIOCOUTQ, bytes(4))
    except (OSError, ValueError):
        return 0
    return struct.unpack("i", told)[0]

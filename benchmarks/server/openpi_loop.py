"""Restates the loop of openpi's websocket server: what it does for a request, written anew.

It is not openpi's file. That one (`openpi.serving.websocket_policy_server`) is in openpi's repository, which brings JAX
and the models; what the package index calls `openpi` is an empty place-holder. The loop: receive, unpack with
openpi-client's own msgpack, call the policy in the event loop, add the time, pack, send; no compression and no limit of
size; an error is sent as a traceback and ends the connection; `/healthz` says OK.
"""

from __future__ import annotations

import asyncio
import http
import json
import sys
import time
import traceback
from typing import Any, Protocol

from openpi_client import msgpack_numpy
from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response


class MessagePolicy(Protocol):
    def infer(self, message: dict[str, Any]) -> dict[str, Any]: ...


def serve_policy(policy: MessagePolicy, told: dict[str, Any], port: int = 0) -> None:
    """Serve for ever on a port of this machine (0: a free one), which is told as an event on stderr."""
    asyncio.run(_serve(policy, told, port))


async def _serve(policy: MessagePolicy, told: dict[str, Any], port: int) -> None:
    async def answer_all(connection: ServerConnection) -> None:
        packer, total_s = msgpack_numpy.Packer(), None
        await connection.send(packer.pack(told))
        try:
            while True:
                began_s = time.monotonic()
                message = msgpack_numpy.unpackb(await connection.recv())
                asked_s = time.monotonic()
                reply = policy.infer(message)
                reply["server_timing"] = {"infer_ms": 1000 * (time.monotonic() - asked_s)}
                if total_s is not None:
                    reply["server_timing"]["prev_total_ms"] = 1000 * total_s
                await connection.send(packer.pack(reply))
                total_s = time.monotonic() - began_s
        except ConnectionClosed:
            return
        except Exception:
            await connection.send(traceback.format_exc())
            await connection.close(1011, "the policy failed")
            raise

    async with serve(
        answer_all, "127.0.0.1", port, compression=None, max_size=None, process_request=_healthz
    ) as server:
        port = next(iter(server.sockets)).getsockname()[1]
        print(json.dumps({"event": "listening", "port": port}), file=sys.stderr, flush=True)
        await server.serve_forever()


def _healthz(connection: ServerConnection, request: Request) -> Response | None:
    return connection.respond(http.HTTPStatus.OK, "ok\n") if request.path == "/healthz" else None

"""How tests speak to a server: as openpi's client does, with bare messages, and until a plan is there."""

from __future__ import annotations

import time
from typing import Any

import websockets.sync.client
from openpi_client.websocket_client_policy import WebsocketClientPolicy

from tests.serving.support import ServerProcess, observe


def connect(server: ServerProcess, **options: Any) -> WebsocketClientPolicy:
    return WebsocketClientPolicy("127.0.0.1", server.port, **options)


def raw(server: ServerProcess, **options: Any) -> websockets.sync.client.ClientConnection:
    return websockets.sync.client.connect(f"ws://127.0.0.1:{server.port}", max_size=None, **options)


def until(client: WebsocketClientPolicy, subtask: str, mark: int, **fields: Any) -> dict[str, Any]:
    """Ask until the subtask is the one that is decided on images of `mark`."""
    end = time.monotonic() + 60
    while True:
        reply = client.infer(observe(mark, **fields))
        if reply["subtask"] == subtask:
            return reply
        assert time.monotonic() < end, reply
        time.sleep(0.01)

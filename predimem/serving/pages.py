"""What plain HTTP requests get, on the same port as the robots.

A page runs in a thread of its own and may read files and the store.
"""

from __future__ import annotations

import json
from typing import Protocol

from predimem.serving.engine import Engine, status
from predimem.serving.http_reply import TEXT, Page
from predimem.serving.page import routes


class Healthy(Protocol):
    def health(self) -> tuple[bool, str]: ...


def open_page(engine: Healthy, path: str) -> Page | None:
    """What is told without a key: to load balancers, and the dashboard without its data; None: nothing here."""
    if path == "/healthz":
        ready, what = engine.health()
        return Page(200 if ready else 503, TEXT, f"{what}\n".encode())
    return routes.shell(path)


def page(engine: Engine, address: str) -> Page:
    """What is told to those who may connect. address: the path as it was sent, with what is asked behind `?`."""
    path, _, asked = address.partition("?")
    if path == "/metrics":
        return Page(200, "text/plain; version=0.0.4; charset=utf-8", engine.metrics.page())
    if path == "/status.json":
        return Page(200, "application/json", json.dumps(status(engine)).encode())
    return routes.data(engine, path, asked) or Page(404, TEXT, b"there is no such page\n")

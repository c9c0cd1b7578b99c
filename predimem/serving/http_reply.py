"""What an HTTP request is answered with."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

TEXT = "text/plain; charset=utf-8"
FOREVER = (("Cache-Control", "private, max-age=31536000, immutable"),)  # for addresses whose content never changes


class Page(NamedTuple):
    """headers: besides the ones that every answer has; they replace those of the same name."""

    status: int
    content_type: str
    body: bytes
    headers: tuple[tuple[str, str], ...] = ()


def json_page(data: Any) -> Page:
    return Page(200, "application/json", json.dumps(data, separators=(",", ":")).encode())


def missing(what: str) -> Page:
    return Page(404, TEXT, f"{what}\n".encode())

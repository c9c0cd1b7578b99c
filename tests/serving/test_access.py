"""Who may connect: pages of others, keys and TLS."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest
import websockets.sync.client
from websockets.exceptions import ConnectionClosed, InvalidStatus

from predimem.serving import wire
from predimem.serving.access import Access
from tests.serving.clients import connect, raw
from tests.serving.support import observe, settings, small_config, small_server, tls_server

KEY = "a key of sixteen+ characters"


def test_pages_of_others_may_not_connect(tmp_path: Path) -> None:
    with small_server(tmp_path, {"planner": False}) as server:
        for headers in (
            {"Origin": "https://evil.example"}, {"Host": "evil.example"}, {"Origin": "http://["}, {"Host": "["},
        ):  # fmt: skip
            assert server.get("/metrics", headers)[0] == 403
        with pytest.raises(InvalidStatus) as refused:
            raw(server, origin="https://evil.example")
        assert refused.value.response.status_code == 403
        with raw(server, origin=f"http://127.0.0.1:{server.port}") as own:
            own.recv()


def test_keys(tmp_path: Path) -> None:
    (tmp_path / "key").write_text(KEY + "\n")
    with small_server(tmp_path, {"planner": False}, access={"api_key_file": str(tmp_path / "key")}) as server:
        assert connect(server, api_key=KEY).infer(observe())["step"] == 0
        for options in ({}, {"api_key": "a key of sixteen+ characterz"}):
            with pytest.raises(InvalidStatus) as refused:
                connect(server, **options)
            assert refused.value.response.status_code == 401
        assert server.get("/healthz")[0] == 200
        assert server.get("/metrics")[0] == 401
        assert server.get("/metrics", {"Authorization": f"Api-Key {KEY}"})[0] == 200
        basic = base64.b64encode(f"me:{KEY}".encode()).decode()
        assert server.get("/metrics", {"Authorization": f"Basic {basic}"})[0] == 200
        assert server.get("/metrics", {"Authorization": "Basic !"})[0] == 401


def test_an_open_address_needs_a_key(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="that needs a key"):
        settings(small_config(host="0.0.0.0"))
    (tmp_path / "key").write_text("short")
    config = settings(small_config(host="0.0.0.0", access={"api_key_file": str(tmp_path / "key")}))
    with pytest.raises(ValueError, match="at least 16"):
        Access(config)


def test_tls(tmp_path: Path) -> None:
    with tls_server(tmp_path) as (server, context):
        with websockets.sync.client.connect(f"wss://127.0.0.1:{server.port}", ssl=context) as secure:
            assert wire.unpack(bytes(secure.recv()), 1000)["server"] == "predimem"  # type: ignore[arg-type]
        with pytest.raises((ConnectionClosed, OSError, EOFError, websockets.exceptions.InvalidMessage)):
            raw(server)

"""Clients that send too much, too little or nonsense harm nobody but themselves."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator

import numpy as np
import pytest
from websockets.exceptions import ConnectionClosed

from predimem.serving import wire
from tests.serving.clients import connect, raw, until
from tests.serving.support import ServerProcess, observe, small_server


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with small_server(tmp_path_factory.mktemp("serve"), limits={"message_bytes": 100_000}) as made:
        yield made


def test_limits_of_messages(server: ServerProcess) -> None:
    victim = connect(server)
    before = until(victim, "mark 7", 7, episode_id="victim")
    with raw(server) as attacker:
        attacker.recv()
        attacker.send("text")
        assert str(attacker.recv()).startswith("malformed: expected a binary message")
        attacker.send(b"x" * 100_001)
        with pytest.raises(ConnectionClosed) as closed:
            attacker.recv()
        assert closed.value.rcvd is not None and closed.value.rcvd.code == 1009
    with raw(server) as attacker:
        attacker.recv()
        for _ in range(20):
            attacker.send(b"\xc1")
            attacker.recv()
        with pytest.raises(ConnectionClosed) as closed:
            attacker.recv()
        assert closed.value.rcvd is not None and closed.value.rcvd.code == 1008
    after = victim.infer(observe(7, episode_id="victim"))
    assert after["step"] == before["step"] + 4


def test_hostile_messages_reach_nobody_else(server: ServerProcess) -> None:
    """1,000 of them, damaged, truncated and made up; a robot beside them misses no reply."""
    rng = np.random.default_rng(0)
    good = bytearray(wire.pack(observe(7, episode_id="shared", step=3)))
    victim, stop = connect(server), threading.Event()
    until(victim, "mark 7", 7, episode_id="robot")
    steps: list[int] = []

    def play() -> None:
        while not stop.is_set():
            steps.append(victim.infer(observe(7, episode_id="robot"))["step"])

    player = threading.Thread(target=play)
    player.start()
    sent = 0
    try:
        while sent < 1000:
            with raw(server) as attacker:
                attacker.recv()
                try:
                    for _ in range(50):
                        attacker.send(hostile(good, rng))
                        attacker.recv(timeout=20)
                        sent += 1
                except ConnectionClosed:
                    continue
    finally:
        stop.set()
        player.join()
    assert np.all(np.diff(steps) == 4) and len(steps) > 10
    assert server.process.poll() is None and server.get("/healthz") == (200, "ok\n")


def hostile(good: bytearray, rng: np.random.Generator) -> bytes:
    kind, message = rng.integers(5), bytearray(good)
    if kind == 0:
        return rng.bytes(rng.integers(1, 500))
    if kind == 1:
        return bytes(message[: rng.integers(1, len(message))])
    if kind == 2:
        return bytes([0x81 + rng.integers(15)] * rng.integers(1, 3000))
    if kind == 3:
        weird = [2**64 - 1, -1, float("nan"), "x" * 2000, [[]], {"a": {}}, None, b"\0", True]
        fields = rng.choice(["step", "executed", "prompt", "episode_id", "state", "reset", "cam_a", "images"], 3)
        return wire.pack(observe() | {str(f): weird[rng.integers(len(weird))] for f in fields})
    for place in rng.integers(0, len(message), rng.integers(1, 30)):
        message[place] = rng.integers(256)
    return bytes(message)


def test_a_client_that_sends_half_a_message_holds_nobody_up(server: ServerProcess) -> None:
    with socket.create_connection(("127.0.0.1", server.port)) as half, raw(server, close_timeout=0.1) as silent:
        half.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n")
        silent.recv()
        silent.socket.sendall(b"\x82\xfe\x10\x00mask")  # a frame of 4,096 bytes that never comes
        assert connect(server).infer(observe())["step"] == 0

"""Transfers by bare sockets: what is slow but steady is finished, what stalls is closed, and the server stays up."""

from __future__ import annotations

import socket
import ssl
import time
from collections.abc import Iterator
from pathlib import Path
from signal import SIGCONT, SIGSTOP, SIGTERM

import pytest
import websockets.sync.client
from websockets.client import ClientProtocol
from websockets.exceptions import ConnectionClosed
from websockets.frames import CloseCode, Frame, Opcode
from websockets.uri import parse_uri

from predimem.core.config import from_dict
from predimem.serving import wire
from predimem.serving.limits import LimitsConfig
from tests.serving.clients import connect, raw, until
from tests.serving.support import ServerProcess, observe, small_server, tls_server

OPEN_S, STALL_S = 5.0, 2.0
LARGE = "x" * (6 << 20)  # more than the system takes off the server's hands at once
UPGRADE = (
    b"GET / HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
)
LIMITS = {
    **{"open_s": OPEN_S, "stall_s": STALL_S, "drain_s": 1.0},
    **{"prompt_characters": 2 * len(LARGE), "message_bytes": 2 * len(LARGE)},
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """Without a planner: the subtask of its replies is the task, however long that is."""
    with small_server(tmp_path_factory.mktemp("serve"), {"planner": False}, limits=LIMITS) as made:
        until(connect(made), LARGE, 7, prompt=LARGE, episode_id="large")  # the status page shows it
        yield made


def slow_socket(server: ServerProcess) -> socket.socket:
    """Its system takes little that is not read."""
    made = socket.socket()
    made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
    made.settimeout(60)
    made.connect(("127.0.0.1", server.port))
    return made


def asked_for_the_status(server: ServerProcess, tls: ssl.SSLContext | None = None) -> socket.socket:
    made = slow_socket(server)
    if tls is not None:
        made = tls.wrap_socket(made, server_hostname="127.0.0.1", suppress_ragged_eofs=False)
    made.sendall(b"GET /status.json HTTP/1.1\r\nHost: localhost\r\n\r\n")
    return made


def read_steadily(client: socket.socket, size: int, seconds: float) -> bytes:
    """`size` bytes or all that come, a little at a time, evenly over `seconds`."""
    began_s, data = time.monotonic(), bytearray()
    while len(data) < size and (part := client.recv(min(1 << 15, size - len(data)))):
        data += part
        time.sleep(max(0.0, began_s + seconds * len(data) / size - time.monotonic()))
    return bytes(data)


def read_to_the_end(client: socket.socket) -> bytes:
    data = bytearray()
    while part := client.recv(1 << 16):
        data += part
    return bytes(data)


def alive(server: ServerProcess) -> bool:
    return server.get("/healthz")[0] == 200 and connect(server).infer(observe())["step"] == 0


def check_a_page_that_is_read_slowly(client: socket.socket) -> None:
    """It takes longer than a stall may last, and is whole."""
    began_s, head = time.monotonic(), b""
    while b"\r\n\r\n" not in head:
        head += client.recv(1)
    size = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
    body = read_steadily(client, size, 3 * STALL_S)
    assert len(body) == size > len(LARGE) and body.endswith(b"]}")
    assert time.monotonic() - began_s > 2.9 * STALL_S
    assert client.recv(1) == b""


def check_a_page_that_nobody_reads_on(server: ServerProcess, client: socket.socket) -> None:
    began_s = time.monotonic()
    client.recv(1000)
    told = server.event("download stalled")
    assert time.monotonic() - began_s > STALL_S
    assert (told["path"], told["stall_s"]) == ("/status.json", STALL_S) and told["bytes_left"] > 1 << 20
    with pytest.raises((ConnectionResetError, ssl.SSLEOFError)):  # an error, not an end that looks like one
        read_to_the_end(client)


@pytest.mark.slow
def test_pages_that_are_read_slowly_and_not_on(server: ServerProcess) -> None:
    with asked_for_the_status(server) as client:
        check_a_page_that_is_read_slowly(client)
    with asked_for_the_status(server) as client:
        check_a_page_that_nobody_reads_on(server, client)
    assert alive(server)


@pytest.mark.slow
def test_pages_over_tls(tmp_path: Path) -> None:
    with tls_server(tmp_path, limits=LIMITS) as (server, tls):
        with websockets.sync.client.connect(f"wss://127.0.0.1:{server.port}", ssl=tls) as robot:
            robot.recv()
            robot.send(wire.pack(observe(prompt=LARGE)))
            robot.recv()
        with asked_for_the_status(server, tls) as client:
            check_a_page_that_is_read_slowly(client)
        with asked_for_the_status(server, tls) as client:
            check_a_page_that_nobody_reads_on(server, client)


def test_a_robot_that_does_not_read_its_reply_is_dropped(server: ServerProcess) -> None:
    dropped = len([entry for entry in server.log() if entry["event"] == "download stalled"])
    with slow_socket(server) as robot:
        robot.sendall(UPGRADE)
        assert robot.recv(1000).startswith(b"HTTP/1.1 101 ")
        robot.sendall(Frame(Opcode.BINARY, wire.pack(observe(prompt=LARGE, episode_id="large"))).serialize(mask=True))
        assert server.event("download stalled", nth=dropped + 1)["path"] == "/"
    assert alive(server)


@pytest.mark.slow
@pytest.mark.parametrize("seconds", [3 * STALL_S, 50.0])
def test_a_message_that_comes_slowly_is_answered(server: ServerProcess, seconds: float) -> None:
    """Even one that takes so long that no ping can be answered meanwhile."""
    protocol = ClientProtocol(parse_uri("ws://localhost"))
    protocol.send_request(protocol.connect())
    frame = Frame(Opcode.BINARY, wire.pack(observe(episode_id=f"slow-{seconds}"))).serialize(mask=True)
    pieces = 40
    with slow_socket(server) as robot:
        robot.sendall(b"".join(protocol.data_to_send()))
        for number in range(pieces):
            first, last = (len(frame) * n // pieces for n in (number, number + 1))
            robot.sendall(frame[first:last])
            time.sleep(seconds / pieces)
        said: list[bytes] = []  # the metadata, and the reply
        while len(said) < 2 and (part := robot.recv(1 << 16)):
            protocol.receive_data(part)
            events = protocol.events_received()
            said += [e.data for e in events if isinstance(e, Frame) and e.opcode is Opcode.BINARY]
    assert wire.unpack(bytes(said[1]), 1 << 20)["step"] == 0  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "begun",
    [
        Frame(Opcode.BINARY, wire.pack(observe())).serialize(mask=True)[:100],
        Frame(Opcode.BINARY, b"x" * 70_000).serialize(mask=True)[:14],  # its head
        Frame(Opcode.BINARY, b"first fragment", fin=False).serialize(mask=True),
        Frame(Opcode.PING, b"whole").serialize(mask=True) + b"\x82",
    ],
    ids=["within its data", "after its head", "between fragments", "after one byte"],
)
def test_a_message_that_stops_in_the_middle_is_closed_with_the_reason(server: ServerProcess, begun: bytes) -> None:
    with raw(server) as robot:
        robot.recv()
        robot.socket.sendall(begun)
        began_s = time.monotonic()
        with pytest.raises(ConnectionClosed) as closed:
            robot.recv(timeout=60)
        assert time.monotonic() - began_s > 0.9 * STALL_S
        assert closed.value.rcvd is not None and closed.value.rcvd.code == CloseCode.POLICY_VIOLATION
        assert closed.value.rcvd.reason == "the message stopped in the middle: no byte for 2 s (limits.stall_s)"
    assert alive(server)


@pytest.mark.slow
def test_a_robot_that_says_nothing_between_messages_stays(server: ServerProcess) -> None:
    with raw(server) as robot:
        robot.recv()
        for step in (0, 4):
            robot.send(wire.pack(observe(episode_id="pauses", step=step)))
            assert wire.unpack(bytes(robot.recv()), 1 << 20)["step"] == step  # type: ignore[arg-type]
            time.sleep(1.5 * STALL_S)


@pytest.mark.slow
@pytest.mark.parametrize("said", [b"", b"GET / HTTP/1.1\r\nHost: localhost\r\n"], ids=["nothing", "half a head"])
def test_a_client_that_does_not_say_what_it_wants(server: ServerProcess, said: bytes) -> None:
    with slow_socket(server) as client:
        began_s = time.monotonic()
        client.sendall(said)
        answer = read_to_the_end(client)
    assert time.monotonic() - began_s > 0.9 * OPEN_S
    assert answer.startswith(b"HTTP/1.1 408 ")
    assert answer.endswith(f"no request came within {OPEN_S:g} s (limits.open_s)\n".encode())


@pytest.mark.slow
def test_time_in_which_the_server_stands_still_is_not_the_clients(server: ServerProcess) -> None:
    """As on a machine that is suspended: what a client had no chance to send in time is still heard."""
    with slow_socket(server) as client:
        time.sleep(0.5)  # the server has seen it
        server.process.send_signal(SIGSTOP)
        time.sleep(1.2 * OPEN_S)
        server.process.send_signal(SIGCONT)
        time.sleep(0.5)  # the server has looked at its clients
        client.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert read_to_the_end(client).startswith(b"HTTP/1.1 200 ")


def test_a_slow_page_does_not_hold_up_the_end(tmp_path: Path) -> None:
    with small_server(tmp_path, {"planner": False}, limits=LIMITS) as server:
        connect(server).infer(observe(prompt=LARGE))
        with asked_for_the_status(server) as client, slow_socket(server):
            client.recv(1000)
            server.process.send_signal(SIGTERM)
            assert server.process.wait(30) == 0
            assert server.event("drained")["cut_short"] == 1


def test_the_former_name_of_a_limit() -> None:
    assert from_dict(LimitsConfig, {"send_s": 3.0}).stall_s == 3.0

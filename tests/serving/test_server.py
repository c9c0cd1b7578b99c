"""Real server processes, small models, and the clients of openpi."""

from __future__ import annotations

import base64
import json
import os
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import websockets.sync.client
from openpi_client.action_chunk_broker import ActionChunkBroker
from openpi_client.runtime.agents.policy_agent import PolicyAgent
from openpi_client.runtime.environment import Environment
from openpi_client.runtime.runtime import Runtime
from openpi_client.websocket_client_policy import WebsocketClientPolicy
from typing_extensions import override
from websockets.exceptions import ConnectionClosed, InvalidStatus

from predimem.serving import wire
from predimem.serving.access import Access
from predimem.serving.metadata import metadata
from tests.serving.support import (
    SIDE,
    MarkPlanner,
    ServerProcess,
    free_port,
    observe,
    server_process,
    settings,
    small_config,
    small_models,
    small_server,
)

KEY = "a key of sixteen+ characters"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with small_server(tmp_path_factory.mktemp("serve"), limits={"message_bytes": 100_000}) as made:
        yield made


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


def test_metadata_tells_all_that_a_client_needs(server: ServerProcess) -> None:
    told = connect(server).get_server_metadata()
    expected = metadata(settings(small_config(limits={"message_bytes": 100_000})), small_models())
    assert told == expected
    assert (told["cameras"], told["image_size"], told["state_dim"]) == (["cam_a", "cam_b"], [SIDE, SIDE], 3)
    assert (told["action_dim"], told["action_horizon"], told["control_hz"]) == (2, 4, 20.0)
    assert told["example_prompt"] == "do it" and told["weights"] == {"actor": "0" * 16}


def test_health_and_metrics(server: ServerProcess) -> None:
    assert server.get("/healthz") == (200, "ok\n")
    connect(server).infer(observe())
    assert server.metric("predimem_ready") == 1 and server.metric("predimem_sessions") >= 1
    assert server.metric("predimem_reply_seconds_count") >= 1
    assert server.get("/../etc/passwd")[0] == server.get("/nothing")[0] == 404
    shown = json.loads(server.get("/status.json")[1])
    assert shown["ready"] and shown["sessions"][-1]["instruction"] == "do it"


class Counter(Environment):
    """Its image shows how many actions were applied; episodes of `length` steps, named by their number."""

    def __init__(self, length: int):
        self._length = length
        self.episodes: list[list[list[float]]] = []

    @override
    def reset(self) -> None:
        self.episodes.append([])

    @override
    def is_episode_complete(self) -> bool:
        return len(self.episodes[-1]) >= self._length

    @override
    def get_observation(self) -> dict:
        return observe(len(self.episodes[-1]), episode_id=f"runtime-{len(self.episodes)}")

    @override
    def apply_action(self, action: dict) -> None:
        self.episodes[-1].append(action["actions"].tolist())


def test_openpis_runtime_plays_episodes(server: ServerProcess) -> None:
    """One request for each chunk: the server counts the steps of a chunk, and the memory begins anew."""
    client = connect(server)
    environment = Counter(length=40)
    broker = ActionChunkBroker(client, client.get_server_metadata()["action_horizon"])
    Runtime(environment, PolicyAgent(broker), [], max_hz=200, num_episodes=2).run()
    for actions in environment.episodes[:2]:
        assert len(actions) == 40
        acted = [(step, action) for step, action in enumerate(actions) if action != [-1.0, 0.0]]
        assert acted and acted[-1][0] == 39
        assert all(action == [step, step - step % 4] for step, action in acted)  # the image at the chunk's start


def test_the_planner_answers_behind_the_actors_back(server: ServerProcess) -> None:
    """Images of value 100 take the planner a second; the actor goes on with the last subtask at once."""
    client = connect(server)
    until(client, "mark 7", 7)
    began_s = time.monotonic()
    replies = [client.infer(observe(100)) for _ in range(5)]
    assert time.monotonic() - began_s < 0.9
    assert {reply["subtask"] for reply in replies} == {"mark 7"}
    assert all(reply["actions_valid"] == 4 for reply in replies)
    until(client, "mark 100", 100)


def test_a_snapshot_that_fails_is_an_error_of_its_plan_alone(server: ServerProcess) -> None:
    client = connect(server)
    until(client, "mark 7", 7)
    for _ in range(100):
        reply = client.infer(observe(101))
        if reply["plan_error"]:
            break
        time.sleep(0.02)
    assert "RuntimeError" in reply["plan_error"] and "this image" not in reply["plan_error"]
    assert (reply["subtask"], reply["actions_valid"]) == ("mark 7", 4)
    until(client, "mark 8", 8)


def test_an_error_is_text_and_the_connection_lasts(server: ServerProcess) -> None:
    client = connect(server)
    with pytest.raises(RuntimeError, match="malformed: cam_a: expected uint8") as error:
        client.infer(observe() | {"cam_a": np.zeros((2, 2, 3))})
    assert "Traceback" not in str(error.value) and "/" not in str(error.value)
    assert client.infer(observe())["step"] == 0


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


def test_pages_of_others_may_not_connect(server: ServerProcess) -> None:
    for headers in ({"Origin": "https://evil.example"}, {"Host": "evil.example"}):
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
    certificate, key = tmp_path / "certificate.pem", tmp_path / "key.pem"
    subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"]
    options = ["-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-out", certificate, "-keyout", key]
    subprocess.run(["openssl", "req", *options, *subject], check=True, capture_output=True)
    access = {"tls_certificate": str(certificate), "tls_key": str(key)}
    data = small_config(access=access)
    command = ["-m", "tests.serving.support", json.dumps([data, {"planner": False}])]
    with server_process(command, tmp_path / "serve.log") as server:
        context = ssl.create_default_context(cafile=certificate)
        with websockets.sync.client.connect(f"wss://127.0.0.1:{server.port}", ssl=context) as secure:
            assert wire.unpack(bytes(secure.recv()), 1000)["server"] == "predimem"  # type: ignore[arg-type]
        with pytest.raises((ConnectionClosed, OSError, EOFError, websockets.exceptions.InvalidMessage)):
            raw(server)


def test_drain_answers_what_is_under_way(tmp_path: Path) -> None:
    with small_server(tmp_path, {"planner": False, "policy_s": 0.5}) as server:
        client, idle = connect(server), connect(server)
        while client.infer(observe())["actions_valid"] == 0:
            pass
        replies: list[dict[str, Any]] = []
        slow = threading.Thread(target=lambda: replies.append(client.infer(observe())))
        slow.start()
        time.sleep(0.2)
        server.process.send_signal(signal.SIGTERM)
        slow.join()
        assert replies[0]["actions_valid"] == 4
        with pytest.raises((ConnectionClosed, RuntimeError)):
            idle.infer(observe())
        assert server.process.wait(20) == 0
        assert server.event("drained")["cut_short"] == 0


def test_sigterm_to_the_whole_process_group_is_no_error(tmp_path: Path) -> None:
    """As systemd and shells send it: to the planner's process, too, which is busy with a slow image (100). The server
    still has a request to answer, and loses no planner meanwhile."""
    with small_server(tmp_path, {"policy_s": 1.0}) as server:
        client = connect(server)
        until(client, "mark 7", 7)
        replies: list[dict[str, Any]] = []
        slow = threading.Thread(target=lambda: replies.append(client.infer(observe(100))))
        slow.start()
        planner = planner_pid(server)
        time.sleep(0.3)
        os.killpg(server.process.pid, signal.SIGTERM)
        slow.join()
        assert replies[0]["actions_valid"] == 4
        assert server.process.wait(30) == 0
        assert server.event("stopped") and server.faults() == []
        assert not Path(f"/proc/{planner}").exists()


def test_sigterm_while_the_models_are_loaded(tmp_path: Path) -> None:
    command = ["-m", "tests.serving.support", json.dumps([small_config(), {}])]
    with server_process(command, tmp_path / "serve.log") as server:  # it listens, and its planner is being started
        os.killpg(server.process.pid, signal.SIGTERM)
        assert server.process.wait(60) == 0 and server.faults() == []


@pytest.mark.parametrize("how", ["crash", "kill", "hang"])
def test_s1_goes_on_when_s2_is_lost(tmp_path: Path, how: str) -> None:
    """The planner's process ends by itself, is killed, or is stopped; it is reported and restarted."""
    with small_server(tmp_path, s2_process={"timeout_s": 6.0, "restart_s": 0.2}) as server:
        client, other = connect(server), connect(server)
        until(client, "mark 7", 7, episode_id="a")
        until(other, "mark 8", 8, episode_id="b")
        pid = planner_pid(server)
        if how == "kill":
            os.kill(pid, signal.SIGKILL)
        elif how == "hang":
            os.kill(pid, signal.SIGSTOP)
        mark = 102 if how == "crash" else 9
        states, slowest = set(), 0.0
        until_s = time.monotonic() + 60
        while server.metric("predimem_s2_restarts_total") == 0:
            began_s = time.monotonic()
            reply = client.infer(observe(mark, episode_id="a"))
            slowest = max(slowest, time.monotonic() - began_s)
            assert (reply["subtask"], reply["actions_valid"]) == ("mark 7", 4)
            assert time.monotonic() < until_s
        while (reply := other.infer(observe(9, episode_id="b")))["subtask"] != "mark 9":
            states.add(reply["planner"])
            assert time.monotonic() < until_s and reply["actions_valid"] == 4
            time.sleep(0.01)
        assert "the planner is restarting" in states
        assert slowest < 6.0  # never waited for S2
        assert planner_pid(server) != pid
        until(client, "mark 10", 10, episode_id="a")
        server.wait_ready()


def planner_pid(server: ServerProcess) -> int:
    """The child that was spawned last; another one is multiprocessing's resource tracker."""
    pid = server.process.pid
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    for thread in Path(f"/proc/{pid}/task").iterdir():
        children += (thread / "children").read_text().split()
    spawned = [c for c in set(children) if b"spawn_main" in Path(f"/proc/{c}/cmdline").read_bytes()]
    return max(map(int, spawned))


def test_what_cannot_be_served_is_one_clear_line(server: ServerProcess, tmp_path: Path) -> None:
    """A port in use, and weights without a planner that works."""
    from predimem.serving.command import run_server

    config = settings(small_config() | {"port": server.port})
    with pytest.raises(ValueError, match=f"cannot listen on 127.0.0.1 port {server.port}"):
        run_server(config, small_models(planner=False))
    config = settings(small_config(s2_process={"log_dir": str(tmp_path)}))
    broken = replace(small_models(), make_planner=partial(MarkPlanner, "never"))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="the planner cannot be started: TypeError"):
        run_server(config, broken)


def test_a_person_is_told_when_and_where_it_is_ready(tmp_path: Path) -> None:
    port = free_port()
    command = [sys.executable, "-m", "predimem.cli", "serve", "--port", str(port), "--state-dir", str(tmp_path / "s")]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    lines = []
    for line in process.stdout:
        lines.append(line.strip())
        if line.startswith("ready: "):
            break
    ready = f"ready: http://127.0.0.1:{port}/ shows what the robots remember; robots connect to ws://127.0.0.1:{port}"
    assert lines[-1] == ready
    stages = [line for line in lines if "so far" not in line]
    assert stages == ["starting the server", "loading the actor", "loading the planner", ready]
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/") as page:
        assert "<html" in page.read().decode().lower()
    process.terminate()
    _, logs = process.communicate(timeout=60)
    assert process.returncode == 0
    assert [json.loads(line)["event"] for line in logs.splitlines()][-1] == "stopped"  # nothing but JSON

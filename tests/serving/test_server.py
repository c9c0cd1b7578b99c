"""Real server processes, small models, and the clients of openpi."""

from __future__ import annotations

import json
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from openpi_client.action_chunk_broker import ActionChunkBroker
from openpi_client.runtime.agents.policy_agent import PolicyAgent
from openpi_client.runtime.environment import Environment
from openpi_client.runtime.runtime import Runtime
from typing_extensions import override

from predimem.serving.metadata import metadata
from tests.serving.clients import connect, until
from tests.serving.support import (
    SIDE,
    MarkPlanner,
    ServerProcess,
    free_port,
    observe,
    settings,
    small_config,
    small_models,
    small_server,
)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with small_server(tmp_path_factory.mktemp("serve"), limits={"message_bytes": 100_000}) as made:
        yield made


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


@pytest.mark.slow
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

"""Servers that are told to end, and planners whose process is lost."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect as websocket

from tests.processes import is_running
from tests.serving.clients import connect, until
from tests.serving.support import observe, planner_pid, server_process, small_config, small_server


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
        assert not is_running(planner)


def test_sigterm_while_the_models_are_loaded(tmp_path: Path) -> None:
    command = ["-m", "tests.serving.support", json.dumps([small_config(), {}])]
    with server_process(command, tmp_path / "serve.log") as server:  # it listens, and its planner is being started
        os.killpg(server.process.pid, signal.SIGTERM)
        assert server.process.wait(60) == 0 and server.faults() == []


def test_a_client_that_waits_for_the_models_does_not_keep_the_server_from_ending(tmp_path: Path) -> None:
    command = ["-m", "tests.serving.support", json.dumps([small_config(), {"planner_build_s": 300.0}])]
    with server_process(command, tmp_path / "serve.log") as server:
        with websocket(f"ws://127.0.0.1:{server.port}"):  # as openpi's, it waits for the metadata
            os.killpg(server.process.pid, signal.SIGTERM)
            assert server.process.wait(60) == 0 and server.faults() == []
        assert "ready" not in [line["event"] for line in server.log()]


def test_a_client_that_waits_learns_that_the_models_cannot_be_loaded(tmp_path: Path) -> None:
    command = ["-m", "tests.serving.support", json.dumps([small_config(), {"planner_fault": "no such weights"}])]
    with server_process(command, tmp_path / "serve.log") as server:
        with websocket(f"ws://127.0.0.1:{server.port}") as client, pytest.raises(ConnectionClosed):
            client.recv(60)
        assert server.process.wait(60) != 0


@pytest.mark.parametrize("how", ["crash", "kill", pytest.param("hang", marks=pytest.mark.slow)])
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

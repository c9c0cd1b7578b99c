"""examples/openpi_client.py plays the arena through openpi's Runtime, whatever happens to the server."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.serving.support import ROOT, ServerProcess, free_port, server_process

pytestmark = [pytest.mark.slow, pytest.mark.needs("vulkan")]


def serve(port: int, state: Path) -> list[str]:
    options = ["--config", "configs/serve_arena.yaml", "--port", str(port), "--state-dir", str(state)]
    return ["-m", "predimem.cli", "serve", *options]


def example(port: int, *options: str) -> subprocess.Popen[str]:
    command = [sys.executable, "examples/openpi_client.py", "--port", str(port), "--task", "1", *options]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    return subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True)


def last_step(server: ServerProcess) -> int:
    sessions = json.loads(server.get("/status.json")[1])["sessions"]
    return max((s["reply"]["step"] for s in sessions if s["reply"]), default=0)


@pytest.mark.timeout(900)
def test_a_whole_episode_with_a_kill(tmp_path: Path) -> None:
    """kill -9 in the middle: the episode goes on with its keyframes, and succeeds."""
    port = free_port()
    with server_process(serve(port, tmp_path / "state"), tmp_path / "log-0") as first:
        first.wait_ready(600)
        robot = example(port)
        while last_step(first) < 60:
            assert robot.poll() is None
            time.sleep(0.2)
        first.kill()
    with server_process(serve(port, tmp_path / "state"), tmp_path / "log-1") as second:
        said = robot.communicate(timeout=600)[0]
        resumed = second.event("episode goes on")
        assert second.metric('predimem_outcomes_total{outcome="success"}') == 1
        replies = second.metric("predimem_reply_seconds_count")
    found = re.search(r"task 1, seed 900000: success after (\d+) steps", said)
    assert robot.returncode == 0 and found is not None
    assert resumed["episode_id"].startswith("openpi/1/900000/")
    assert 60 <= int(found[1]) - (replies - 1) < int(found[1])  # what the first server answered


@pytest.mark.timeout(900)
def test_chunks(tmp_path: Path) -> None:
    """Through ActionChunkBroker, cut short: one request for each four steps, each with its own step."""
    port = free_port()
    with server_process(serve(port, tmp_path / "state"), tmp_path / "log") as server:
        server.wait_ready(600)
        robot = example(port, "--chunks", "--max-steps", "39")
        said = robot.communicate(timeout=600)[0]
        assert robot.returncode == 0 and "failure after 40 steps" in said
        assert server.metric("predimem_reply_seconds_count") == 10 + 1

"""examples/openpi_client.py: openpi's Runtime plays on, whatever happens to the server."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from openpi_client.action_chunk_broker import ActionChunkBroker
from openpi_client.runtime.agents.policy_agent import PolicyAgent
from openpi_client.runtime.environment import Environment
from openpi_client.runtime.runtime import Runtime

from tests.serving.support import ROOT, ServerProcess, free_port, observe, server_process, small_config

FILE = ROOT / "examples/openpi_client.py"
STEPS = 80


class SmallRobot(Environment):
    """Of `support.small_models`, about 50 steps a second."""

    def __init__(self) -> None:
        self.acted: list[np.ndarray] = []

    def reset(self) -> None:
        pass

    def is_episode_complete(self) -> bool:
        return len(self.acted) == STEPS

    def get_observation(self) -> dict[str, Any]:
        return observe(7, episode_id="robot/1", step=len(self.acted))

    def apply_action(self, action: dict[str, Any]) -> None:
        self.acted.append(np.atleast_2d(action["actions"])[0])
        time.sleep(0.02)


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(FILE.parent))  # as Python does for a script; the example takes it away
    spec = importlib.util.spec_from_file_location("example", FILE)
    assert spec is not None and spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


@pytest.mark.slow
@pytest.mark.parametrize("chunks", [False, True])
def test_the_policy_survives_a_kill(module: ModuleType, tmp_path: Path, chunks: bool) -> None:
    port = free_port()
    config = small_config(port=port, state={"dir": str(tmp_path / "state")})
    command = ["-m", "tests.serving.support", json.dumps([config, {"planner": False}])]
    robot = SmallRobot()
    with server_process(command, tmp_path / "log-0") as first:
        first.wait_ready()
        policy = module.PatientPolicy("127.0.0.1", port)
        asked = ActionChunkBroker(policy, policy.metadata["action_horizon"]) if chunks else policy
        playing = threading.Thread(target=Runtime(robot, PolicyAgent(asked), []).run, daemon=True)
        playing.start()
        while len(robot.acted) < 20:
            time.sleep(0.01)
        first.kill()
    with server_process(command, tmp_path / "log-1") as second:
        playing.join(90)
        assert not playing.is_alive() and second.metric('predimem_episodes_total{how="resumed"}') == 1
    steps = [int(step) for step, _ in robot.acted]
    held = [k for k, step in enumerate(steps) if step == -1]  # until there was a plan
    assert all(step == k for k, step in enumerate(steps) if k not in held) and max(held, default=0) < 20
    assert len(steps) == STEPS


def test_a_refusal_is_raised(module: ModuleType, tmp_path: Path) -> None:
    command = ["-m", "tests.serving.support", json.dumps([small_config(), {"planner": False}])]
    with server_process(command, tmp_path / "log") as server:
        server.wait_ready()
        policy = module.PatientPolicy("127.0.0.1", server.port, patience_s=0.2)
        with pytest.raises(RuntimeError, match="malformed: prompt"):
            policy.infer(observe(7, prompt="<b>"))
        server.kill()
    with pytest.raises(TimeoutError, match=r"no answer within 0\.2 s"):
        policy.infer(observe(7))


def serve(port: int, state: Path) -> list[str]:
    options = ["--config", "configs/serve_arena.yaml", "--port", str(port), "--state-dir", str(state)]
    return ["-m", "predimem.cli", "serve", *options]


def example(port: int, *options: str) -> subprocess.Popen[str]:
    command = [sys.executable, str(FILE), "--port", str(port), "--task", "1", *options]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    return subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True)


def last_step(server: ServerProcess) -> int:
    sessions = json.loads(server.get("/status.json")[1])["sessions"]
    return max((s["reply"]["step"] for s in sessions if s["reply"]), default=0)


@pytest.mark.slow
@pytest.mark.needs("vulkan")
@pytest.mark.timeout(900)
def test_a_whole_episode_with_a_kill(tmp_path: Path) -> None:
    """kill -9 in the middle of a task of the arena: the episode goes on, and succeeds."""
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


@pytest.mark.slow
@pytest.mark.needs("vulkan")
@pytest.mark.timeout(900)
def test_chunks(tmp_path: Path) -> None:
    """Through ActionChunkBroker, cut short: one request for each four steps, and one to end the episode."""
    port = free_port()
    with server_process(serve(port, tmp_path / "state"), tmp_path / "log") as server:
        server.wait_ready(600)
        robot = example(port, "--chunks", "--max-steps", "39")
        said = robot.communicate(timeout=600)[0]
        assert robot.returncode == 0 and "failure after 40 steps" in said  # Runtime plays one step more
        assert server.metric("predimem_reply_seconds_count") == 10 + 1

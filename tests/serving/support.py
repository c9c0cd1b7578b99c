"""Servers for tests: real processes with small models, and the clients that robots use."""

from __future__ import annotations

import json
import os
import signal
import socket
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from memory_bank import MemoryConfig
from memory_bank.retrieval import SessionMemory
from predimem.core.types import ActionChunk, MemorySnapshot, Observation, Plan
from predimem.serving.config import ServeConfig
from predimem.serving.known_tasks import KnownTasks
from predimem.serving.robot import RobotSpec, Served
from tests.processes import children

ROOT = Path(__file__).parents[2]
CAMERAS = ("cam_a", "cam_b")
SIDE = 8
ROBOT = RobotSpec(CAMERAS, (SIDE, SIDE), 3, 2)
MEMORY = MemoryConfig(recent_window=2, cluster_gap_steps=1)
HORIZON = 8


def mark_of(images: Mapping[str, np.ndarray]) -> int:
    """The red value of the first camera's first pixel."""
    return int(next(iter(images.values()))[0, 0, 0])


class MarkPlanner:
    """The subtask is the red value of the newest image; values from 200 on are nominated as keyframes.

    It adds the red value of the newest image of earlier sessions, where it is shown some.
    Images of value 100 are slow, of 101 raise, of 102 end the process.
    """

    def __init__(self, delay_s: float = 0.0, fault: str | None = None, build_s: float = 0.0):
        """fault: why it cannot be made. build_s: how long that takes."""
        time.sleep(build_s)
        if fault is not None:
            raise ValueError(fault)
        self._delay_s = delay_s

    def plan(self, snapshot: MemorySnapshot) -> Plan:
        marks = {frame.step: mark_of(frame.images) for frame in snapshot.recent}
        newest = marks[snapshot.step]
        time.sleep(1.0 if newest == 100 else self._delay_s)
        if newest == 101:
            raise RuntimeError("this image cannot be planned")
        if newest == 102:
            os.kill(os.getpid(), signal.SIGKILL)
        nominated = tuple(step for step, mark in marks.items() if mark >= 200)
        earlier = [mark_of(frame.images) for past in snapshot.past_sessions for frame in past.frames]
        after = f" after {earlier[-1]}" if earlier else ""
        return Plan(snapshot.episode_id, snapshot.step, f"mark {newest}{after}", nominated, "{}")


def gated_sessions(config: MemoryConfig) -> SessionMemory:
    """A memory that shows the session that the default gate admits, by the shipped tower."""
    return SessionMemory(config, embedder="planner.tower_embedding:tower")


def all_sessions(config: MemoryConfig) -> SessionMemory:
    """A memory that shows all earlier sessions."""
    return SessionMemory(config, select="uncapped")


class StepPolicy:
    """actions[k] = (step + k, red value of the image); `delay_s` for a pass, whatever its size."""

    def __init__(self, delay_s: float = 0.0):
        self._delay_s = delay_s

    def infer(self, observation: Observation, subtask: str) -> ActionChunk:
        return self.infer_batch([observation], [subtask])[0]

    def infer_batch(self, observations: Sequence[Observation], subtasks: Sequence[str]) -> list[ActionChunk]:
        time.sleep(self._delay_s)
        chunks = []
        for observation, subtask in zip(observations, subtasks, strict=True):
            steps = observation.step + np.arange(HORIZON, dtype=np.float32)
            marks = np.full(HORIZON, mark_of(observation.images), np.float32)
            chunks.append(ActionChunk(observation.step, np.stack([steps, marks], 1), subtask))
        return chunks


def small_models(
    planner: bool = True,
    planner_s: float = 0.0,
    planner_fault: str | None = None,
    planner_build_s: float = 0.0,
    policy_s: float = 0.0,
    tasks: Sequence[str] = (),
    own_memory: str | None = None,
    cameras: Sequence[str] = CAMERAS,
    side: int = SIDE,
) -> Served:
    make = partial(MarkPlanner, planner_s, planner_fault, planner_build_s) if planner else None
    memory = replace(MEMORY, implementation=own_memory)
    robot = RobotSpec(tuple(cameras), (side, side), ROBOT.state_dim, ROBOT.action_dim)
    return Served(robot, StepPolicy(policy_s), make, memory, {"actor": "0" * 16}, KnownTasks(tuple(tasks)))


def small_config(**changes: Any) -> dict[str, Any]:
    """Settings that fit `small_models`, as plain data; patient, for machines that are busy."""
    changes["limits"] = {"deadline_s": 30.0} | changes.get("limits", {})
    return {"robot": {"hold": [-1.0, 0.0], "hold_keeps": [], "example_prompt": "do it"}, "port": 0} | changes


def observe(mark: int = 7, cameras: Sequence[str] = CAMERAS, side: int = SIDE, **fields: Any) -> dict[str, Any]:
    """An observation whose images show `mark`."""
    images = {name: np.full((side, side, 3), mark, np.uint8) for name in cameras}
    return {**images, "state": np.zeros(3, np.float32), "prompt": "do it", **fields}


def settings(data: dict[str, Any]) -> ServeConfig:
    from predimem.serving.command import serve_config

    return serve_config(None, data)


class ServerProcess:
    """One server in a process of its own."""

    def __init__(self, process: subprocess.Popen[bytes], log: Path):
        self.process = process
        self._log = log
        self.port = int(self.event("listening", 600)["port"])  # importing torch takes minutes on a busy machine

    def event(self, name: str, timeout_s: float = 120.0, nth: int = 1) -> dict[str, Any]:
        """The nth log entry of this event; waits for it."""
        until = time.monotonic() + timeout_s
        while time.monotonic() < until:
            found = [entry for entry in self.log() if entry["event"] == name]
            if len(found) >= nth:
                return found[nth - 1]
            if self.process.poll() is not None:
                break
            time.sleep(0.02)
        raise AssertionError(f"no {name!r} in the log:\n{self._log.read_text()}")

    def log(self) -> list[dict[str, Any]]:
        lines = self._log.read_text().splitlines()
        return [json.loads(line) for line in lines if line.startswith("{") and line.endswith("}")]

    def faults(self) -> list[str]:
        """What was written beside the line for people: lines that are no entries, and warnings and errors."""
        lines = (line for line in self._log.read_text().splitlines() if not line.startswith("ready: "))
        return [line for line in lines if '"level": "info"' not in line]

    def get(self, path: str, headers: dict[str, str] | None = None) -> tuple[int, str]:
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", headers=headers or {})
        try:
            with urllib.request.urlopen(request, timeout=20) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def metric(self, name: str) -> float:
        _, page = self.get("/metrics")
        return next(float(line.split()[-1]) for line in page.splitlines() if line.split()[0] == name)

    def wait_ready(self, timeout_s: float = 120.0, state: str = "ok\n") -> None:
        until = time.monotonic() + timeout_s
        while self.get("/healthz") != (200, state):
            assert time.monotonic() < until and self.process.poll() is None, self._log.read_text()
            time.sleep(0.05)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


@contextmanager
def server_process(command: Sequence[str], log: Path) -> Iterator[ServerProcess]:
    """Run `python <command>` as a server in a process group of its own; it is ended at the latest with the block."""
    environment = os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    with open(log, "wb") as file:
        process = subprocess.Popen(
            [sys.executable, *command], cwd=ROOT, stdout=file, stderr=file, env=environment, start_new_session=True
        )
    try:
        yield ServerProcess(process, log)
    finally:
        process.kill()
        process.wait()


@contextmanager
def small_server(folder: Path, models: dict[str, Any] | None = None, **changes: Any) -> Iterator[ServerProcess]:
    """A server of `small_models`, ready."""
    data = json.dumps([small_config(**changes), models or {}])
    number = len(list(folder.glob("serve-*.log")))
    with server_process(["-m", "tests.serving.support", data], folder / f"serve-{number}.log") as server:
        server.wait_ready()
        yield server


@contextmanager
def tls_server(folder: Path, **changes: Any) -> Iterator[tuple[ServerProcess, ssl.SSLContext]]:
    """A server without a planner, and what its clients trust: a certificate that is made for it."""
    certificate, key = folder / "certificate.pem", folder / "key.pem"
    subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"]
    options = ["-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-out", certificate, "-keyout", key]
    subprocess.run(["openssl", "req", *options, *subject], check=True, capture_output=True)
    access = {"tls_certificate": str(certificate), "tls_key": str(key)}
    data = json.dumps([small_config(access=access, **changes), {"planner": False}])
    with server_process(["-m", "tests.serving.support", data], folder / "serve.log") as server:
        server.event("ready")
        yield server, ssl.create_default_context(cafile=certificate)


def planner_pid(server: ServerProcess) -> int:
    """The child that was spawned last; another one is multiprocessing's resource tracker."""
    spawned = [c for c in children(server.process.pid) if b"spawn_main" in Path(f"/proc/{c}/cmdline").read_bytes()]
    return max(spawned)


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def main() -> None:
    from predimem.serving.command import run_server
    from tests.serving.support import small_models as make  # by its importable name: the planner's class is pickled

    data, models = json.loads(sys.argv[1])
    config = settings(data)
    if config.cluster.address is None:
        run_server(config, make(**models))
    else:
        from predimem.serving.cluster.command import run_cluster

        run_cluster(config, partial(make, **models))


if __name__ == "__main__":
    main()

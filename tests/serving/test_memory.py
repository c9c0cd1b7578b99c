"""A server's memory does not grow: garbage is freed, free memory goes back, and what has ended holds nothing."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest
from websockets.sync.client import connect

from predimem.serving import memory, wire
from tests.serving.support import ROOT, observe, server_process, small_config, small_server

PROGRAM = """
import gc, sys, weakref
from predimem.serving.memory import settle

class Connection:
    pass

stays = [[] for _ in range(400_000)]  # torch
gc.collect()
if sys.argv[1] == "settled":
    settle()
connection = Connection()
connection.itself = connection
gc.collect(1)  # it is old now
seen = weakref.ref(connection)
del connection
for _ in range(300):
    passing = [[] for _ in range(800)]  # requests
print(seen() is None)
"""

HOLES = """
import numpy as np
from tests.serving.support import main
blocks, between = [], []
for _ in range(64 * 20):
    blocks.append(np.ones(50 << 10, np.uint8))
    between.append(bytes(2000))
blocks.clear()
main()
"""


def freed(how: str) -> str:
    done = subprocess.run([sys.executable, "-c", PROGRAM, how], capture_output=True, text=True, check=True, timeout=300)
    return done.stdout.strip()


def test_a_settled_process_frees_old_garbage() -> None:
    assert (freed("settled"), freed("as it is")) == ("True", "False")


def mib(pid: int, field: str = "RssAnon") -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(f"{field}:"))


@pytest.mark.skipif(not memory._GNU, reason="the C library is not GNU's")
def test_threads_share_a_heap(tmp_path: Path) -> None:
    """Each heap of a thread begins at a multiple of 64 MiB."""
    with small_server(tmp_path) as server, ExitStack() as robots:
        for number in range(12):
            robot = robots.enter_context(connect(f"ws://127.0.0.1:{server.port}"))
            robot.recv()
            robot.send(wire.pack(observe(episode_id=f"e{number}", step=0)))
            robot.recv()
        assert server.metric("predimem_sessions") == 12  # with a thread each
        maps = Path(f"/proc/{server.process.pid}/maps").read_text().splitlines()
        writable = (line for line in maps if line.split()[1] == "rw-p" and len(line.split()) == 5)
        heaps = [line for line in writable if int(line.partition("-")[0], 16) % (64 << 20) == 0]
        assert len(heaps) <= 2, heaps


@pytest.mark.slow
@pytest.mark.skipif(not memory._GNU, reason="the C library is not GNU's")
def test_a_server_gives_free_memory_back(tmp_path: Path) -> None:
    """It begins with a heap of 64 MiB that is free but for small blocks in between."""
    with server_process(["-c", HOLES, json.dumps([small_config(), {}])], tmp_path / "serve.log") as server:
        until = time.monotonic() + 60
        while (now := mib(server.process.pid)) > 64:
            assert time.monotonic() < until, f"{now:.0f} MiB are still in use"
            time.sleep(0.2)


def test_a_refused_message_is_not_kept(tmp_path: Path) -> None:
    """60 messages of 4 MiB, one after the other; garbage collections are too rare to be waited for."""
    with small_server(tmp_path) as server, connect(f"ws://127.0.0.1:{server.port}", max_size=None) as robot:
        before = mib(server.process.pid, "VmHWM")
        robot.recv()
        large, reply = np.zeros(4 << 20, np.uint8), b""
        for step in (100, *[50] * 60):
            robot.send(wire.pack(observe(episode_id="a", step=step, large=large)))
            reply = robot.recv()
        assert str(reply).startswith("order: step 50 after step 100")
        assert mib(server.process.pid, "VmHWM") - before < 50


@pytest.mark.slow
def test_episodes_leave_nothing_behind(tmp_path: Path) -> None:
    """In a process of its own: what tests before it have loaded and started would be counted too."""
    command = [sys.executable, "-m", "tests.serving.left_behind", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) < 1200  # bytes; the ends of 1000 episodes are remembered

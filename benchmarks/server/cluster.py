"""Measures replicas behind the Ray gateway: requests a second, and how long they take, against one server without Ray.

Robots ask as fast as they are answered, each for an episode of its own. `shipped`: `configs/serve_cluster.yaml` with
the weights that come with PrediMem; every replica has an actor and a planner, and all share this machine's cores.
`waiting`: the tests' models, whose actor waits 20 ms for a pass of one observation and leaves the processor alone, as a
GPU of its own would; it shows what the gateway lets through.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.server.served import Begun, paragraph, progress, shipped_server, table
from tests.serving.support import ServerProcess, server_process, small_config

CONFIG = "configs/serve_cluster.yaml"
PASS_S = 0.02
WAITING = {"agent": {"execute_steps": 1}, "s1_batches": {"size": 1}}


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--replicas", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--robots", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--warm-s", type=float, default=5.0)
    parser.add_argument("--models", nargs="+", choices=["shipped", "waiting"], default=["waiting", "shipped"])


@contextmanager
def served(models: str, replicas: int) -> Iterator[ServerProcess]:
    """So many replicas; 0: one server, no cluster."""
    with tempfile.TemporaryDirectory() as folder:
        cluster = {"address": "local", "replicas": replicas, "cpus_per_replica": 0.5} if replicas else {}
        state = {"dir": f"{folder}/state"}
        if models == "shipped":
            with shipped_server(Path(folder), CONFIG, cluster=cluster or {"address": None}, state=state) as server:
                yield server
                end(server)
            return
        data = [small_config(**WAITING, cluster=cluster, state=state), {"planner": False, "policy_s": PASS_S}]
        with server_process(["-m", "tests.serving.support", json.dumps(data)], Path(folder) / "serve.log") as server:
            server.wait_ready(300)
            yield server
            end(server)


def started(stack: ExitStack, models: str, replicas: int, attempts: int = 6) -> ServerProcess:
    """Ray gives its own processes 30 s to start, which is short on a busy machine: it is tried a few times."""
    try:
        return stack.enter_context(served(models, replicas))
    except AssertionError as failed:
        if attempts == 1 or "Ray cannot be started" not in str(failed):
            raise
    progress("Ray did not start in time: once more")
    return started(stack, models, replicas, attempts - 1)


def end(server: ServerProcess) -> None:
    """A gateway takes its Ray along only if it may end by itself."""
    server.process.terminate()
    server.process.wait(90)


def measure(server: ServerProcess, args: argparse.Namespace) -> tuple[np.ndarray, Counter[str]]:
    """Milliseconds of the replies, and refusals."""
    job = {"port": server.port, "robots": args.robots, "hz": 0, "every": 1, "warm_s": args.warm_s}
    command = [sys.executable, "-m", "benchmarks.server.robots", json.dumps(job | {"seconds": args.seconds})]
    done = subprocess.run(command, capture_output=True, text=True, timeout=args.seconds + args.warm_s + 240)
    if done.returncode:
        raise RuntimeError(f"the robots ended with {done.returncode}:\n{done.stderr}")
    told: list[dict[str, Any]] = json.loads(done.stdout.splitlines()[-1])
    refusals = sum((Counter(robot["refusals"]) for robot in told), Counter())
    return np.array([row[0] for robot in told for row in robot["replies"]]), refusals


def run(args: argparse.Namespace) -> str:
    begun, rows = Begun.now(), []
    for models in args.models:
        for replicas in (0, *args.replicas):
            with ExitStack() as stack:
                waited, refusals = measure(started(stack, models, replicas), args)
            p50, p99 = np.percentile(waited, [50, 99])
            rate = len(waited) / args.seconds
            served_by = [models, f"{replicas} behind the gateway" if replicas else "one server without Ray"]
            figures = [str(len(waited)), f"{rate:.1f}", f"{p50:.1f}", f"{p99:.1f}", str(sum(refusals.values()))]
            rows.append(served_by + figures)
            progress(" | ".join(rows[-1]))
    said = paragraph(
        f"""{begun.line()} {args.robots} robots without a pause between requests, {args.seconds:g} s for each row after
        {args.warm_s:g} s to warm up, all on this machine. `waiting`: an actor that waits {PASS_S * 1000:g} ms for one
        observation at a time, images of 2 x 8 px, no planner; `shipped`: `{CONFIG}` with the weights that come with
        PrediMem, {4} control steps from one pass to the next, images of 2 x 128 px. Episodes are kept on disk."""
    )
    head = ("models", "replicas", "replies", "replies/s", "p50, ms", "p99, ms", "refused")
    return f"{said}\n\n{table(head, rows)}\n"

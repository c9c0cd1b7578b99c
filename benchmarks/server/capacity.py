"""Measures how many robots with a control loop of 20 Hz fit: 1, 2, 4, ..., until half of the replies take too long.

The strict way asks at every control step, as the memory likes it best; the chunked way asks once for each chunk of
`execute_steps` and plays it, as openpi's `ActionChunkBroker` does. In both a reply is late if it takes longer than one
control step. The robots are openpi's clients, all in one process of their own, on the same machine.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.server.served import Begun, Usage, own_server, paragraph, progress, shipped_server, table
from tests.serving.support import ServerProcess, planner_pid

HZ = 20.0
LATE_MS = 1000 / HZ
HEAD = (
    "models, a request each, robots",
    "requests",
    "p50, ms",
    "p99, ms",
    "late",
    "missed steps",
    "refused",
    "S1 with queue, p99 ms",
    "plans/s and robot",
    "plan age p50 / p95, steps",
    "server, CPU ms a request",
    "cores: server, S2, robots, others",
    "breaks",
)


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--robots", type=int, nargs="+", default=[1, 2, 4, 8, 16, 32])
    parser.add_argument("--seconds", type=float, default=20.0, help="that count, for each number of robots")
    parser.add_argument("--warm-s", type=float, default=4.0)
    parser.add_argument("--models", nargs="+", choices=["shipped", "none"], default=["shipped", "none"])
    parser.add_argument(
        "--engines", nargs="+", choices=["plain", "fused", "openvino"], default=["plain", "fused", "openvino"],
        help="how the shipped actor is run",
    )  # fmt: skip
    parser.add_argument("--every", type=int, nargs="+", default=[1, 4], help="control steps between requests")


def play(server: ServerProcess, robots: int, args: argparse.Namespace, every: int, hz: float = HZ) -> dict[str, Any]:
    """What `robots` robots met: arrays of the replies, counters, cores in use, plans a second and robot."""
    job = {"port": server.port, "robots": robots, "hz": hz, "every": every, "warm_s": args.warm_s}
    command = [sys.executable, "-m", "benchmarks.server.robots", json.dumps(job | {"seconds": args.seconds})]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        if process.stdout.readline() != "begun\n":
            raise RuntimeError("the robots cannot play, see above")
        pids = {"server": server.process.pid, "s2": planner_pid(server), "robots": process.pid}
        time.sleep(args.warm_s)
        before, plans = Usage.now(pids), server.metric("predimem_plans_total")
        time.sleep(max(1.0, args.seconds - 2.0))
        cores = Usage.now(pids).cores_since(before)
        plans = (server.metric("predimem_plans_total") - plans) / max(1.0, args.seconds - 2.0) / robots
        out = process.communicate(timeout=120)[0]
    finally:
        process.kill()
        process.wait()
    if process.returncode:
        raise RuntimeError(f"the robots ended with {process.returncode}, see above")
    told = json.loads(out)
    refusals = sum((Counter(robot["refusals"]) for robot in told), Counter())
    rows = np.array([row for robot in told for row in robot["replies"]], np.float64).reshape(-1, 3)
    missed = sum(robot["missed_steps"] for robot in told)
    return {"replies": rows, "refusals": refusals, "missed": missed, "cores": cores, "plans": plans}


def row(name: str, robots: int, every: int, met: dict[str, Any], seconds: float) -> tuple[list[str], bool]:
    """The cells, and whether half of the replies are late, or some refused."""
    replies, refusals, cores = met["replies"], met["refusals"], met["cores"]
    refused = sum(refusals.values())
    if not len(replies):
        return [name, str(refused), *["-"] * 10, "nothing was answered"], True
    waited, s1, age = replies.T
    p50, p99 = np.percentile(waited, [50, 99])
    passes, aged = s1[s1 > 0], age[age >= 0]
    trouble = [f"p99 above {LATE_MS:g} ms"] if p99 > LATE_MS else []
    trouble += [f"{count} {code}" for code, count in sorted(refusals.items())]
    cells = [
        f"{name}, {'control step' if every == 1 else f'{every} steps'}, {robots}",
        str(len(replies) + refused),
        f"{p50:.1f}",
        f"{p99:.1f}",
        f"{100 * np.mean(waited > LATE_MS):.1f} %",
        f"{100 * met['missed'] / (robots * HZ * seconds):.1f} %",
        str(refused),
        f"{np.percentile(passes, 99):.1f}" if len(passes) else "-",
        f"{met['plans']:.1f}",
        "{:.0f} / {:.0f}".format(*np.percentile(aged, [50, 95])) if len(aged) else "-",
        f"{1000 * cores['server'] * seconds / max(1, len(replies)):.1f}",
        ", ".join(f"{cores[name]:.2f}" for name in ("server", "s2", "robots", "others")),
        "; ".join(trouble),
    ]
    return cells, bool(p50 > LATE_MS or refused)


def series(server: ServerProcess, models: str, every: int, args: argparse.Namespace) -> list[list[str]]:
    """Rows for more and more robots, until half of the replies are late or some are refused."""
    rows = []
    for robots in args.robots:
        cells, over = row(models, robots, every, play(server, robots, args, every), args.seconds)
        rows.append(cells)
        progress(" | ".join(cells))
        if over:
            break
    return rows


def _server(folder: Path, models: str, engine: str) -> AbstractContextManager[ServerProcess]:
    if models == "shipped":
        return shipped_server(folder, models={"engine": {"kind": engine}})
    return own_server(models)


def run(args: argparse.Namespace) -> str:
    begun, rows = Begun.now(), []
    served = [(models, e) for models in args.models for e in (args.engines if models == "shipped" else [""])]
    for models, engine in served:
        with tempfile.TemporaryDirectory() as folder, _server(Path(folder), models, engine) as server:
            for every in args.every:
                rows += series(server, f"{models}, {engine}" if engine else models, every, args)
    said = paragraph(
        f"""{begun.line()} One run of {args.seconds:g} s for each row after {args.warm_s:g} s to warm up; images of
        2 x 128 px, `configs/serve.yaml`. `shipped`: planner and actor that come with PrediMem, on one core each at
        most, with the engine of the actor; `none`: models that answer at once, which leaves the server. A reply is
        late after {LATE_MS:g} ms, one control step. `others`: cores that were taken by what else ran. A series ends
        where half of the replies are late or some are refused."""
    )
    return f"{said}\n\n{table(HEAD, rows)}\n"

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
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.server.served import Begun, Usage, own_server, paragraph, progress, shipped_server, table
from tests.serving.support import ServerProcess, planner_pid

HZ = 20.0
LATE_MS = 1000 / HZ
CASE = ("models", "actor's engine", "steps between requests", "robots")
REPLIES = ("requests", "p50, ms", "p99, ms", "late, %", "missed steps, %", "refused", "breaks")
LOAD = (
    "S1 with queue, p99 ms",
    "plans/s and robot",
    "plan age p50, steps",
    "plan age p95, steps",
    "server, CPU ms a request",
    "cores: server",
    "cores: S2",
    "cores: robots",
    "cores: others",
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


@dataclass(frozen=True)
class Row:
    """The cells of one number of robots, by table."""

    case: list[str]
    replies: list[str]
    load: list[str]
    over: bool
    """Half of the replies are late, or some are refused."""


def row(case: list[str], met: dict[str, Any], robots: int, seconds: float) -> Row:
    replies, refusals, cores = met["replies"], met["refusals"], met["cores"]
    refused = sum(refusals.values())
    if not len(replies):
        unanswered = [str(refused), *["-"] * (len(REPLIES) - 2), "nothing was answered"]
        return Row(case, unanswered, ["-"] * len(LOAD), over=True)
    waited, s1, age = replies.T
    p50, p99 = np.percentile(waited, [50, 99])
    passes, aged = s1[s1 > 0], age[age >= 0]
    trouble = [f"p99 above {LATE_MS:g} ms"] if p99 > LATE_MS else []
    trouble += [f"{count} {code}" for code, count in sorted(refusals.items())]
    told = [
        str(len(replies) + refused),
        f"{p50:.1f}",
        f"{p99:.1f}",
        f"{100 * np.mean(waited > LATE_MS):.1f}",
        f"{100 * met['missed'] / (robots * HZ * seconds):.1f}",
        str(refused),
        "; ".join(trouble),
    ]
    load = [
        f"{np.percentile(passes, 99):.1f}" if len(passes) else "-",
        f"{met['plans']:.1f}",
        *([f"{np.percentile(aged, q):.0f}" for q in (50, 95)] if len(aged) else ["-", "-"]),
        f"{1000 * cores['server'] * seconds / max(1, len(replies)):.1f}",
        *(f"{cores[name]:.2f}" for name in ("server", "s2", "robots", "others")),
    ]
    return Row(case, told, load, over=bool(p50 > LATE_MS or refused))


def series(server: ServerProcess, models: str, engine: str, every: int, args: argparse.Namespace) -> list[Row]:
    """Rows for more and more robots, until half of the replies are late or some are refused."""
    rows = []
    for robots in args.robots:
        case = [models, engine, str(every), str(robots)]
        rows.append(row(case, play(server, robots, args, every), robots, args.seconds))
        progress(" | ".join(rows[-1].case + rows[-1].replies))
        if rows[-1].over:
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
                rows += series(server, models, engine, every, args)
    said = paragraph(
        f"""{begun.line()} One run of {args.seconds:g} s for each row after {args.warm_s:g} s to warm up; images of
        2 x 128 px, `configs/serve.yaml`. `shipped`: planner and actor that come with PrediMem, on one core each at
        most, with the engine of the actor; `none`: models that answer at once, which leaves the server. A reply is
        late after {LATE_MS:g} ms, one control step. A series ends where half of the replies are late or some are
        refused."""
    )
    used = paragraph(
        """The same runs: what the models and the processes did. `cores: others` are those that were taken by what else
        ran."""
    )
    replies = table((*CASE, *REPLIES), (r.case + r.replies for r in rows))
    load = table((*CASE, *LOAD), (r.case + r.load for r in rows))
    return f"{said}\n\n{replies}\n\n{used}\n\n{load}\n"

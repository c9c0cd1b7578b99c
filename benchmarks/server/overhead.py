"""Measures what a request costs beside the model: PrediMem's server and openpi's loop around one policy, in turns.

One client sends the same observations to both, one request each in turn, the first one of a turn changing. Each server
is a process of its own, and both time the policy's pass in the same place (models.py). The rest of the time until the
reply is what the client's packing, two ways over loopback and the server take; the first is the same for both.
PrediMem's server has no planner here, as openpi's has none, and asks its actor at every request; it does check every
field, keep a memory and remember what it said, which openpi's does not.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
from openpi_client.websocket_client_policy import WebsocketClientPolicy

from benchmarks.server.images import Views
from benchmarks.server.served import Begun, cpu_s, paragraph, progress, table
from tests.serving.support import server_process

SERVERS = ("predimem", "openpi")
NAMES = {"predimem": "PrediMem's server", "openpi": "openpi's loop, restated"}
EACH_STEP = {"agent": {"execute_steps": 1}}
WARM_UP = 20


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--requests", type=int, default=1000, help="to each server without a model; with it a fifth")
    parser.add_argument("--pause-s", type=float, default=0.005, help="between two requests")


def measure(models: str, requests: int, pause_s: float) -> dict[str, dict[str, np.ndarray]]:
    """Per server: milliseconds until the reply, of the model, and in the server; CPU milliseconds of a request."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        servers, clients = {}, {}
        for name in SERVERS:
            job = {"server": name, "models": models, "timed": True, "config": EACH_STEP}
            command = ["-m", "benchmarks.server.models", json.dumps(job)]
            servers[name] = stack.enter_context(server_process(command, folder / f"{name}.log"))
            servers[name].wait_ready(600)
            clients[name] = WebsocketClientPolicy("127.0.0.1", servers[name].port)
        views = Views(clients["predimem"].get_server_metadata())
        found: dict[str, list[tuple[float, float, float]]] = {name: [] for name in SERVERS}
        used = {}
        for step in range(requests + WARM_UP):
            if step == WARM_UP:
                used = {name: cpu_s(server.process.pid) for name, server in servers.items()}
            for name in SERVERS if step % 2 else SERVERS[::-1]:
                message = views.at(0, step) | ({"step": step} if name == "predimem" else {})
                began_s = time.perf_counter()
                reply = clients[name].infer(message)
                waited_ms = 1000 * (time.perf_counter() - began_s)
                if step >= WARM_UP and reply.get("actions_valid", 1):
                    found[name].append((waited_ms, float(reply["actions"][0, -1]), in_server(reply)))
                time.sleep(pause_s)
        cpu = {name: 1000 * (cpu_s(server.process.pid) - used[name]) / requests for name, server in servers.items()}
    return {
        name: dict(zip(("waited", "model", "server"), np.array(rows).T, strict=True)) | {"cpu": np.array(cpu[name])}
        for name, rows in found.items()
    }


def in_server(reply: dict[str, Any]) -> float:
    """Milliseconds that the server itself counts: openpi's without unpacking, ours without packing the reply."""
    timing = reply["server_timing"]
    return sum(timing[name] for name in ("queue_ms", "decode_ms", "infer_ms") if name in timing)


def run(args: argparse.Namespace) -> str:
    begun, rows = Begun.now(), []
    for models, requests in (("none", args.requests), ("shipped", args.requests // 5)):
        found = measure(models, requests, args.pause_s)
        for name in SERVERS:
            rows.append([NAMES[name], models, *cells(found[name])])
            progress(" | ".join(rows[-1]))
        ours, theirs = (
            (f["waited"] - f["model"])[: min(len(g["waited"]) for g in found.values())] for f in found.values()
        )
        low, high = interval(ours - theirs)
        rows.append(
            [
                "difference",
                models,
                str(len(ours)),
                "",
                "",
                f"{np.median(ours - theirs):+.2f} ({low:+.2f} to {high:+.2f})",
                "",
                "",
                "",
            ]
        )
        progress(" | ".join(rows[-1]))
    head = (
        "server",
        "model",
        "n",
        "reply p50, ms",
        "model p50, ms",
        "beside the model p50, ms",
        "beside the model p99, ms",
        "in the server p50, ms",
        "CPU, ms",
    )
    said = paragraph(
        f"""{begun.line()} One client, {args.pause_s * 1000:g} ms between requests, images of 2 x 128 px, both servers
        in turns; `none` answers at once, `shipped` is the actor that comes with PrediMem. `beside the model`: from the
        client's call to its reply, without the model's pass. `in the server`: what the server counts itself, without
        the pass. `CPU`: processor time of the server's process for a request, with the pass. The difference is the
        median of that of each turn with a 95 % interval of a bootstrap; {NAMES["openpi"]}, is `openpi_loop.py`."""
    )
    return f"{said}\n\n{table(head, rows)}\n"


def cells(found: dict[str, np.ndarray]) -> list[str]:
    beside = found["waited"] - found["model"]
    p50, p99 = np.percentile(beside, [50, 99])
    inside = np.median(found["server"] - found["model"])
    medians = [f"{np.median(found[part]):.2f}" for part in ("waited", "model")]
    return [str(len(beside)), *medians, f"{p50:.2f}", f"{p99:.2f}", f"{inside:.2f}", f"{float(found['cpu']):.2f}"]


def interval(values: np.ndarray) -> tuple[float, float]:
    """95 % of the median, by a bootstrap."""
    rng = np.random.default_rng(0)
    drawn = np.median(values[rng.integers(0, len(values), (2000, len(values)))], axis=1)
    low, high = np.percentile(drawn, [2.5, 97.5])
    return float(low), float(high)

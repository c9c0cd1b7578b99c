"""Plays the arena through clients that are not ours: openpi's, vla-eval's and RoboMemArena's, against `predimem serve`.

    python -m benchmarks.clients --out docs/benchmarks/clients.md

A server with `configs/serve_arena.yaml` is started, and each client plays one episode of each task. openpi's Runtime
keeps to 20 control steps a second, so that its server is in real time. The other two loops are those of simulators,
which wait for each reply; their server is in simulated time, with the latencies of configs/eval/arena_corrected.yaml,
and they have to take the very steps that `predimem eval` takes on the same machine, but where the actor's engines round
differently at a decision that is nearly even.

openpi, every step       examples/openpi_client.py: `openpi_client.runtime.Runtime` with a request at each control step
openpi, chunks           the same through openpi's `ActionChunkBroker`
vla-eval                 vla-eval's own runner and model server, with predimem/serving/adapters/vla_eval_server.py; the
                         model server runs in an environment that this script makes, with the packages that it needs
RoboMemArena             the loop of its evaluation scripts (8b77109, restated in tests/serving/libero.py), with
                         predimem/serving/adapters/robomemarena_adapter.py; the observations are the arena's

The seed of a task is the first one from 900000 on at which `predimem eval` with the same models succeeds, by
results/arena_corrected.json: what is asked is whether a client spoils what works without it, not how good the models
are. Replies, late ones and plans are read from the server's metrics. With --clients, only their section of the page is
new.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import re
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

from benchmarks.server.served import Begun, paragraph, progress, shipped_server, table
from predimem.core.types import Observation
from tests.serving.support import ServerProcess, free_port

ROOT = Path(__file__).resolve().parents[1]
ADAPTERS = ROOT / "predimem/serving/adapters"
CONFIG = "configs/serve_arena.yaml"
EVALUATION, AGENT = "configs/eval/arena_corrected.yaml", "predimem-corrected"  # the models that it serves
RESULTS = ROOT / "results/arena_corrected.json"
PACKAGES = ("vla-eval", "openpi-client", "numpy", "pillow")
LATE_S = 0.05  # a control step
REAL, SIMULATED = "Real time", "Simulated time"
CLIENTS = {"openpi, every step": REAL, "openpi, chunks": REAL, "vla-eval": SIMULATED, "RoboMemArena": SIMULATED}
TIME = {REAL: {"mode": "real"}, SIMULATED: {"mode": "simulated", "s1_latency_steps": 1, "s2_latency_steps": 4}}
HEAD = (
    "client",
    "task",
    "seed",
    "outcome",
    "control steps",
    "of `predimem eval`",
    "replies",
    "late",
    "plans/s",
    "control steps/s",
)
SAID = f"""Made with `python -m benchmarks.clients --out docs/benchmarks/clients.md`, which says what each client is.
Each plays one episode of each task, one after another, against `{CONFIG}` with a state folder. The seed of a task is
the first one from 900000 on at which `predimem eval` with the agent `{AGENT}` succeeds (results/{RESULTS.name}). The
control steps that it takes there on the same machine stand beside those of the client; in simulated time they have to
be the same, but where two subtasks are nearly equally probable: the server runs the actor with the engine `fused`, the
evaluation with `plain`, which round differently. A reply is late where the server took more than {1000 * LATE_S:g} ms,
one control step; in simulated time it waits for the planner. The message that ends an episode is answered, too."""


def first_success(task: str) -> int:
    """The first seed at which the learned system succeeds."""
    from predimem.envs.arena.benchmark import ARENA

    groups = json.loads(RESULTS.read_text())["groups"]
    rows = next(g["rows"] for g in groups if g["agent"] == AGENT and g["task"] == ARENA.task_name(task))
    return min(seed for seed, status, *_ in rows if status == "success")


@cache
def evaluated(task: str, seed: int) -> str:
    """The control steps that `predimem eval` takes on this machine; other processors round otherwise."""
    with tempfile.TemporaryDirectory() as folder:
        options = [
            "--tasks",
            task,
            "--agent",
            AGENT,
            "--episodes",
            "1",
            "--seed-start",
            str(seed),
            "--out",
            folder,
        ]
        output([sys.executable, "-m", "predimem.cli", "eval", "--config", EVALUATION, *options], dict(os.environ))
        [group] = json.loads((Path(folder) / "compact.json").read_text())["groups"]
    [[_, status, steps, *_]] = group["rows"]
    return str(steps) if status == "success" else f"{steps} ({status})"


def vla_eval_python(folder: Path) -> Path:
    """The interpreter of an environment with vla-eval, made where there is none."""
    python = folder / "bin/python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    command = [str(python), "-m", "pip", "install", "-qq", "-c", str(ROOT / "constraints.txt"), *PACKAGES]
    subprocess.run(command, check=True)
    return python


@contextmanager
def model_server(python: Path, port: int, log: Path) -> Iterator[int]:
    """The port of vla-eval's model server, for our server at `port`."""
    mine = free_port()
    options = [f"--port={mine}", "--host=127.0.0.1", f"--args.port={port}", "--args.patience_s=100"]
    with open(log, "wb") as file:
        command = [str(python), str(ADAPTERS / "vla_eval_server.py"), *options]
        process = subprocess.Popen(command, stdout=file, stderr=file)
    try:
        yield mine  # vla-eval's connection waits until it listens
    finally:
        process.kill()
        process.wait()


def play(client: str, task: str, seed: int, server: ServerProcess, args: argparse.Namespace) -> str:
    """What the client's process prints."""
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    if client == "vla-eval":
        python = vla_eval_python(args.venv)
        with model_server(python, server.port, args.venv / "model_server.log") as port:
            place = f"{ROOT}:{sysconfig.get_path('purelib')}"  # the runner needs the arena
            command = [str(python), "-m", "benchmarks.vla_eval_arena", f"ws://127.0.0.1:{port}", task, str(seed)]
            return output(command, environment | {"PYTHONPATH": place})
    options = ["--task", task, "--seed", str(seed), "--port", str(server.port)]
    if client == "RoboMemArena":
        return output([sys.executable, "-m", "benchmarks.clients", "--robomemarena", *options], environment)
    chunks = ["--chunks"] if client == "openpi, chunks" else []
    return output([sys.executable, "examples/openpi_client.py", *options, *chunks], environment)


def output(command: list[str], environment: dict[str, str]) -> str:
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout}\n{done.stderr}")
    return done.stdout


def counted(server: ServerProcess) -> tuple[float, float, float]:
    """Replies, those in time, plans, since the server began."""
    replies, in_time = "predimem_reply_seconds_count", f'predimem_reply_seconds_bucket{{le="{LATE_S:g}"}}'
    return server.metric(replies), server.metric(in_time), server.metric("predimem_plans_total")


def row(client: str, task: str, server: ServerProcess, args: argparse.Namespace) -> list[str]:
    seed = first_success(task)
    usual, before = evaluated(task, seed), counted(server)
    said = play(client, task, seed, server, args)
    found = re.search(r"(success|failure) after (\d+) steps", said)
    if found is None:
        raise RuntimeError(f"{client} did not say how its episode ended:\n{said}")
    replies, in_time, plans = (now - then for now, then in zip(counted(server), before, strict=True))
    steps, seconds = int(found[2]), played_s(server)
    late = f"{replies - in_time:.0f} ({100 * (replies - in_time) / replies:.0f} %)"
    rates = f"{plans / seconds:.1f}", f"{steps / seconds:.1f}"
    return [client, task, str(seed), found[1], str(steps), usual, f"{replies:.0f}", late, *rates]


def played_s(server: ServerProcess) -> float:
    """From the beginning to the end of the last episode, by the server's log."""
    times = [
        next(entry["time"] for entry in reversed(server.log()) if entry["event"] == event)
        for event in ("episode begins", "episode ends")
    ]
    began, ended = (datetime.fromisoformat(time) for time in times)
    return (ended - began).total_seconds()


def play_robomemarena(task: str, seed: int, port: int) -> None:
    """An episode in the loop of its later scripts, which show every step and replay what they are given."""
    from benchmarks.arena_world import ArenaWorld
    from tests.serving.libero import play_observed

    spec = importlib.util.spec_from_file_location("adapter", ADAPTERS / "robomemarena_adapter.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    world, adapter = ArenaWorld(task, seed), module.build_adapter(port=port)

    def make_ready(obs: Observation) -> dict[str, Any]:
        images = dict(zip(module.CAMERAS, obs.images.values(), strict=True))
        return {**images, module.STATE: obs.state}

    adapter.reset()
    play_observed(adapter, world, world.instruction, world.horizon, make_ready=make_ready)
    adapter.close()
    print(f"{'success' if world.success else 'failure'} after {world.steps} steps")


def section(time: str, args: argparse.Namespace) -> str:
    """What the clients that are played in this time do."""
    begun, rows = Begun.now(), []
    with (
        tempfile.TemporaryDirectory() as folder,
        shipped_server(Path(folder), CONFIG, state={"dir": f"{folder}/state"}, time=TIME[time]) as server,
    ):
        for client in (client for client in args.clients if CLIENTS[client] == time):
            for task in args.tasks:
                rows.append(row(client, task, server, args))
                progress(" | ".join(rows[-1]))
    return f"{paragraph(begun.line())}\n\n{table(HEAD, rows)}"


def merged(text: str, made: dict[str, str]) -> str:
    """The page with the sections that were made in place of its own."""
    old = dict(block.split("\n\n", 1) for block in text.split("\n## ")[1:])
    sections = {time: made.get(time, old.get(time, "")).strip() for time in TIME}
    body = "".join(f"\n## {time}\n\n{words}\n" for time, words in sections.items() if words)
    return f"# Clients that are not ours\n\n{paragraph(SAID)}\n{body}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clients", nargs="+", choices=CLIENTS, default=CLIENTS)
    parser.add_argument("--tasks", nargs="+", default=["1", "6", "4"])
    parser.add_argument("--venv", type=Path, default=Path("runs/clients/vla-eval"), help="where vla-eval is installed")
    parser.add_argument("--out", type=Path, help="Markdown file to write; default: print the page")
    parser.add_argument("--robomemarena", action="store_true", help=argparse.SUPPRESS)  # in a process of its own
    for name in ("--task", "--seed", "--port"):
        parser.add_argument(name, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.robomemarena:
        return play_robomemarena(args.task, int(args.seed), int(args.port))
    args.venv = args.venv.resolve()
    made = {time: section(time, args) for time in TIME if time in {CLIENTS[client] for client in args.clients}}
    text = merged(args.out.read_text() if args.out and args.out.exists() else "", made)
    print(text)
    if args.out:
        args.out.write_text(text)


if __name__ == "__main__":
    main()

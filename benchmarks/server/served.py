"""Starts the servers that are measured, and reads what their processes use."""

from __future__ import annotations

import json
import os
import sys
import tempfile
import textwrap
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.serving.support import ServerProcess, server_process

SHIPPED = "configs/serve.yaml"
TICK = os.sysconf("SC_CLK_TCK")
PAGE_MIB = os.sysconf("SC_PAGE_SIZE") / 2**20


@contextmanager
def shipped_server(
    folder: Path, extends: str = SHIPPED, options: tuple[str, ...] = (), **changes: Any
) -> Iterator[ServerProcess]:
    """`predimem serve` with the shipped weights and the settings of `extends`, except for `changes`; ready.

    options: further ones of the command line.
    """
    file = folder / f"{Path(extends).stem}.yaml"
    file.write_text(yaml.safe_dump({"extends": str(Path(extends).resolve()), "port": 0, **changes}))
    command = ["-m", "predimem.cli", "serve", "--config", str(file), *options]
    with server_process(command, folder / "serve.log") as server:
        server.wait_ready(600)
        yield server


@contextmanager
def own_server(models: str, **changes: Any) -> Iterator[ServerProcess]:
    """The same server with one of the models of `models.py`; ready."""
    with tempfile.TemporaryDirectory() as folder:
        wanted = {"server": "predimem", "models": models, "config": changes}
        command = ["-m", "benchmarks.server.models", json.dumps(wanted)]
        with server_process(command, Path(folder) / "serve.log") as server:
            server.wait_ready(600)
            yield server


@dataclass(frozen=True)
class Usage:
    """Seconds of processor time until now: of processes by their names, and of all that the machine did."""

    clock_s: float
    all_s: float
    of: dict[str, float]

    @classmethod
    def now(cls, pids: dict[str, int]) -> Usage:
        ticks = [int(n) for n in Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
        idle = ticks[3] + ticks[4]
        uptime_s = float(Path("/proc/uptime").read_text().split()[0])
        return cls(uptime_s, (sum(ticks) - idle) / TICK, {name: cpu_s(pid) for name, pid in pids.items()})

    def cores_since(self, before: Usage) -> dict[str, float]:
        """Cores in use since then: of each process, and of `others`: all that is not among them."""
        passed_s = self.clock_s - before.clock_s
        cores = {name: (s - before.of[name]) / passed_s for name, s in self.of.items()}
        return cores | {"others": max(0.0, (self.all_s - before.all_s) / passed_s - sum(cores.values()))}


def cpu_s(pid: int) -> float:
    """Processor time of a process and its children that have ended."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(int(n) for n in fields[11:15]) / TICK


def resident_mib(pid: int) -> float:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE_MIB


def anonymous_mib(pid: int) -> float:
    """What of the resident memory is no part of a file. Raises FileNotFoundError for a process that has ended."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) / 1024
    raise FileNotFoundError(f"process {pid} has ended and waits for its parent")


@dataclass(frozen=True)
class Begun:
    """Where and with what code a measurement was begun."""

    code: str
    load: float

    @classmethod
    def now(cls) -> Begun:
        from predimem.evaluation.run.machine import revision

        commit, dirty = revision()
        return cls(f"revision {str(commit)[:7]}{' with changes' if dirty else ''}", os.getloadavg()[0])

    def line(self) -> str:
        """Machine, revision and load, for above a table."""
        from predimem.evaluation.run.machine import machine

        here = machine()
        packages = f"Python {here['python']}, torch {here['packages'].get('torch')}"
        load = f"load average {self.load:.1f} before, {os.getloadavg()[0]:.1f} after"
        cores = "1 core" if here["cores"] == 1 else f"{here['cores']} cores"
        return f"{here['cpu']}, {cores}, {here['system']}, {packages}; {self.code}; {load}."


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Markdown; the first column to the left, numbers to the right."""
    names = list(head)
    lines = [names, ["---", *["---:"] * (len(names) - 1)], *(list(row) for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def progress(words: str) -> None:
    print(words, file=sys.stderr, flush=True)


def paragraph(text: str) -> str:
    """`text` in lines of 120 characters."""
    return textwrap.fill(" ".join(text.split()), 120, break_long_words=False, break_on_hyphens=False)

"""The processes of this machine: whom one has started, and whether they have ended."""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path


def children(pid: int) -> list[int]:
    """The processes that any thread of a process has started; none of a process that has ended."""
    found: set[int] = set()
    try:
        for task in Path(f"/proc/{pid}/task").iterdir():
            found |= set(map(int, (task / "children").read_text().split()))
    except (FileNotFoundError, ProcessLookupError):  # a thread that ends meanwhile
        pass
    return sorted(found)


def descendants(pid: int) -> list[int]:
    """Processes that a process has started, and those that these have started."""
    return [below for child in children(pid) for below in (child, *descendants(child))]


def is_running(pid: int) -> bool:
    """Not so of one that has ended and waits for its parent, maybe PID 1, to read its exit status (a zombie)."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def wait_until_ended(pids: Iterable[int], timeout_s: float = 20.0) -> None:
    """Raises AssertionError with those that still run after the timeout, in seconds."""
    pids = list(pids)
    until = time.monotonic() + timeout_s
    while running := [pid for pid in pids if is_running(pid)]:
        assert time.monotonic() < until, f"these processes still run: {running}"
        time.sleep(0.05)

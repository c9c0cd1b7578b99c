"""Runs a command in a terminal and watches it as a user does: what it says, and how long it says nothing."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
from dataclasses import dataclass
from pathlib import Path

STOP_GRACE_S = 60.0
LINES, COLUMNS = 40, 120  # of the terminal; without a size nothing draws a progress bar
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


@dataclass(frozen=True)
class Watched:
    """What a command did.

    code: its exit code; negative for a signal.
    output: stdout and stderr together, without colours.
    seconds: how long it ran.
    silence_s: the longest time without a new character.
    stopped: whether `until` was seen and it was interrupted for that reason.
    """

    code: int
    output: str
    seconds: float
    silence_s: float
    stopped: bool = False


def watch(command: str, folder: Path, log: Path, timeout_s: float, until: str | None = None) -> Watched:
    """Run a shell command in `folder` and write what it says to `log`.

    until: when this text appears, the command gets Ctrl-C, as a server does from its user.
    A command that runs longer than `timeout_s` is interrupted, and killed a minute later.
    """
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))
    path = f"{folder / '.venv/bin'}{os.pathsep}{os.environ['PATH']}"
    process = subprocess.Popen(
        ["bash", "-c", command],
        cwd=folder,
        env={**os.environ, "PATH": path},
        stdin=subprocess.DEVNULL,
        stdout=slave,
        stderr=slave,
        start_new_session=True,
    )
    os.close(slave)
    began = heard = time.monotonic()
    text, silence, stopped, interrupted = "", 0.0, False, 0.0
    with log.open("wb") as file:
        while True:
            ready, _, _ = select.select([master], [], [], 0.2)
            now = time.monotonic()
            if ready:
                data = _read(master)
                if not data:
                    break
                file.write(data)
                file.flush()
                text += data.decode(errors="replace")
                silence, heard = max(silence, now - heard), now
            if until is not None and not stopped and until in text:
                stopped, interrupted = True, now
                os.killpg(process.pid, signal.SIGINT)
            if not interrupted and now - began > timeout_s:
                interrupted = now
                os.killpg(process.pid, signal.SIGINT)
            if interrupted and now - interrupted > STOP_GRACE_S:
                os.killpg(process.pid, signal.SIGKILL)
                break
    code = process.wait()
    os.close(master)
    silence = max(silence, time.monotonic() - heard)
    return Watched(code, _CONTROL.sub("", text), time.monotonic() - began, silence, stopped)


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # Linux says EIO when the last process has closed the terminal
        return b""

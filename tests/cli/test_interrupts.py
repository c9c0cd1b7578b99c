"""A Ctrl-C that comes in a callback still ends the program."""

from __future__ import annotations

import signal
import subprocess
import sys

PROGRAM = """
import signal, sys, time, weakref
from predimem.cli.interrupts import keep_interrupts

class Thing: pass

if sys.argv[1] == "kept":
    keep_interrupts()
thing = Thing()
reference = weakref.ref(thing, lambda _: signal.raise_signal(signal.SIGINT))
del thing
time.sleep(1)
print("went on")
"""


def run(how: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", PROGRAM, how], capture_output=True, text=True)


def test_python_drops_it_by_itself() -> None:
    assert run("dropped").stdout == "went on\n"


def test_it_comes_again() -> None:
    ended = run("kept")
    assert ended.returncode == -signal.SIGINT and not ended.stdout

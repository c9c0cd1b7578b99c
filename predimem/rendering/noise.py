"""Keeps from standard error what a Vulkan driver writes there and nobody can do anything about.

SwiftShader says "UNSUPPORTED: pProperties->pNext" a few times for each device and renderer. It is native code that
writes to file descriptor 2, so that a process of its own has to stand between: it passes on everything else at once,
and also what comes in the moment in which this process crashes.
"""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress

MEANINGLESS = b"WARNING: UNSUPPORTED: pProperties->pNext"

# A line is held back only while it may still become a meaningless one.
_FILTER = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.SIG_IGN)
meaningless, start = sys.argv[1].encode(), b"../../third_party/swiftshader"
held = b""
while data := os.read(0, 65536):
    *lines, held = (held + data).split(b"\\n")
    out = b"".join(line + b"\\n" for line in lines if meaningless not in line)
    if not held.startswith(start[:len(held)]):
        out, held = out + held, b""
    os.write(2, out)
os.write(2, held)
"""


@contextmanager
def without_driver_noise() -> Iterator[None]:
    """In this block, meaningless lines on file descriptor 2 are dropped."""
    command = [sys.executable, "-I", "-S", "-c", _FILTER, MEANINGLESS.decode()]
    sys.stderr.flush()
    stderr = os.dup(2)
    reader = subprocess.Popen(command, stdin=subprocess.PIPE, stderr=stderr)
    assert reader.stdin is not None
    os.dup2(reader.stdin.fileno(), 2)
    reader.stdin.close()
    try:
        yield
    finally:
        sys.stderr.flush()
        os.dup2(stderr, 2)  # closes the last end to write to, so that the reader ends
        os.close(stderr)
        with suppress(subprocess.TimeoutExpired):  # a process that was started in the block holds on to the pipe
            reader.wait(1.0)


def ignore_loader_warning() -> None:
    """SAPIEN, when it is imported, warns that it uses the Vulkan loader which it brings. It is meant to."""
    warnings.filterwarnings("ignore", message="Failed to find system libvulkan")

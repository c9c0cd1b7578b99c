"""Native noise on file descriptor 2 is dropped; nothing else is, not even when the process crashes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NOISE = "../../third_party/swiftshader/src/Vulkan/libVulkan.cpp:3958 WARNING: UNSUPPORTED: pProperties->pNext sType = 1"
START = f"""
import faulthandler, os, sys
from predimem.rendering.noise import without_driver_noise
faulthandler.enable()
noise = {NOISE!r}
with without_driver_noise():
    os.write(2, (noise + "\\nfirst line\\n" + noise[:30]).encode())
    os.write(2, (noise[30:] + "\\nno line end").encode())
"""


def run(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", START + code], capture_output=True, text=True, cwd=ROOT, timeout=120)


def test_only_the_meaningless_lines_are_dropped() -> None:
    done = run("    print('to stderr', file=sys.stderr)\nos.write(2, (noise + ' after').encode())")
    assert done.returncode == 0
    assert done.stderr == f"first line\nno line endto stderr\n{NOISE} after"


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("    raise ValueError('what went wrong')", "ValueError: what went wrong"),
        ("    os.abort()", "Fatal Python error: Aborted"),
        ("    import ctypes; ctypes.string_at(0)", "Fatal Python error: Segmentation fault"),
        ("    os._exit(3)", "no line end"),
        ("    os.write(2, b'../../third_party/swiftshader: ASSERT failed'); os._exit(3)", "swiftshader: ASSERT failed"),
    ],
)
def test_nothing_is_lost_where_the_process_ends(code: str, expected: str) -> None:
    done = run(code)
    assert done.returncode != 0
    assert "first line" in done.stderr and expected in done.stderr and "UNSUPPORTED" not in done.stderr


def test_a_process_that_was_started_meanwhile_keeps_nobody_waiting() -> None:
    started = "    import subprocess, time; other = subprocess.Popen(['sleep', '60']); began = time.monotonic()\n"
    done = run(started + "print(time.monotonic() - began)\nother.kill()")
    assert float(done.stdout) < 30


@pytest.mark.slow
@pytest.mark.needs("vulkan")
def test_an_environment_is_made_without_noise() -> None:
    code = "from predimem.envs.arena.registration import make; make(4, obs_mode='rgb', sim_backend='cpu').reset(seed=1)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stderr.splitlines() if "so far" not in line]
    assert lines == ["starting SAPIEN"]

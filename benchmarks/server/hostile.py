"""Sends 1,000 damaged, truncated and made-up messages while a robot plays; it runs the test for that once."""

from __future__ import annotations

import argparse
import subprocess
import sys
import time

from benchmarks.server.served import Begun, paragraph

TEST = "tests/serving/test_hostile.py::test_hostile_messages_reach_nobody_else"


def add_options(parser: argparse.ArgumentParser) -> None:
    pass


def run(args: argparse.Namespace) -> str:
    begun, began_s = Begun.now(), time.monotonic()
    done = subprocess.run([sys.executable, "-m", "pytest", TEST], capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"the test failed:\n{done.stdout}{done.stderr}")
    said = paragraph(
        f"""{begun.line()} `pytest {TEST}` passed in {time.monotonic() - began_s:.0f} s: random bytes, cut and damaged
        observations, deep nesting, fields of wrong kinds and sizes. The server lives on and is healthy, and a robot
        beside the attacker gets all its replies, of its own episode, in order."""
    )
    return f"{said}\n"

"""Kills and restarts the server (`kill -9`) in the middle of an episode, again and again: what does the next one know?

The cycles are those of the test `test_twenty_kills`, with a server process and a planner process for each. After each
kill it checks that all keyframes that a reply had named are there and that the subtask is no older than the one before,
and at the end that their images on disk are the right ones; a step whose image was lost with the recent window, the
last one before a kill, has the image before it instead and is left out of the last check.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

from benchmarks.server.served import Begun, paragraph
from tests.serving.test_restart import cycles


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--kills", type=int, default=20)


def run(args: argparse.Namespace) -> str:
    begun, began_s = Begun.now(), time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        kept = cycles(Path(folder), args.kills)
    said = paragraph(
        f"""{begun.line()} One episode through {args.kills} kills of the server's process with `--state-dir`, each
        0.5 to 1.5 s after the robot went on, with the tests' small models (`cycles` in `tests/serving/test_restart.py`,
        which
        fails at the first loss): **0 keyframes lost**, {kept} known at the end, with {args.kills + 1} servers in
        {time.monotonic() - began_s:.0f} s."""
    )
    return f"{said}\n"

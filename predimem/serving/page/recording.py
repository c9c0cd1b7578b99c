"""An episode as a file for the Rerun viewer, to be downloaded.

It is written by a process of its own, one at a time: Rerun's libraries and the episode's images would stay in the
memory of the server.
"""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import tempfile
import threading
from importlib.util import find_spec
from pathlib import Path

from memory_bank.store import without_password
from predimem.serving.http_reply import TEXT, Page

log = logging.getLogger(__name__)
PATIENCE_S = 120.0
EXTRA = "rerun-sdk is not installed where the server runs: pip install 'predimem[export]'\n"
_one_at_a_time = threading.Lock()


def recording(place: str, episode_id: str, control_hz: float) -> Page:
    """The .rrd file of a kept episode; otherwise a page that says why there is none."""
    if find_spec("rerun") is None:
        return Page(501, TEXT, EXTRA.encode())
    if not _one_at_a_time.acquire(blocking=False):
        return Page(503, TEXT, b"another recording is being written; try again in a moment\n")
    try:
        return _written(place, episode_id, control_hz)
    finally:
        _one_at_a_time.release()


def _written(place: str, episode_id: str, control_hz: float) -> Page:
    shown, secret = without_password(place)
    with tempfile.TemporaryDirectory(prefix="predimem-rrd-") as made:
        out = Path(made) / "episode.rrd"
        options = ["--store", shown, "--control-hz", str(control_hz), "--out", str(out)]
        command = [sys.executable, "-m", "predimem.cli", "export", "rerun", *options, "--", episode_id]
        try:
            done = subprocess.run(
                command, stdin=subprocess.DEVNULL, capture_output=True, timeout=PATIENCE_S, env=os.environ | secret
            )
        except subprocess.TimeoutExpired:
            return Page(503, TEXT, f"the recording was not written within {PATIENCE_S:.0f} s\n".encode())
        if done.returncode:
            log.error("no recording: %s", done.stderr.decode(errors="replace")[-2000:])
            return Page(500, TEXT, b"the recording could not be written; the server's log says why\n")
        return Page(200, "application/octet-stream", out.read_bytes())

"""Starts the processes of a training on this machine, one for each GPU, by PyTorch's own `torchrun`."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence

SHUTDOWN_S = 900  # that a checkpoint of full size may take after Ctrl-C


def processes_wanted(device: str, asked: int | None) -> int:
    """One for each GPU unless asked otherwise. Raises ValueError for more than there are GPUs."""
    if asked is not None and asked < 1:
        raise ValueError(f"--processes must be at least 1, got {asked}")
    if not device.startswith("cuda"):
        return asked or 1
    from torch import cuda

    there = cuda.device_count()
    if asked and asked > there:
        raise ValueError(f"--processes {asked}: each needs a GPU of its own, and this machine has {there}")
    return asked or max(1, there)


def is_launched() -> bool:
    """Whether this is one of the processes that `torchrun` or `accelerate launch` started."""
    return "LOCAL_RANK" in os.environ


def is_main() -> bool:
    """Whether this process is the one that tells the user."""
    return int(os.environ.get("RANK", "0")) == 0


def launch(processes: int, words: Sequence[str]) -> int:
    """Runs `predimem WORDS` in so many processes; the exit status. They get Ctrl-C, and save a checkpoint."""
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(processes)]
    command += ["--shutdown-timeout", str(SHUTDOWN_S), "-m", "predimem.cli", *words]
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        return subprocess.call(command, preexec_fn=_hear_ctrl_c)
    finally:
        signal.signal(signal.SIGINT, before)


def _hear_ctrl_c() -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)

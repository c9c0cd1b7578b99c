"""What every test gets: one thread per library, since tests share two cores with each other."""

from __future__ import annotations

import os
import signal

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")
os.environ.setdefault("HF_HUB_OFFLINE", "1")


def pytest_configure() -> None:
    """Under nohup SIGINT is ignored, and the programs that tests start and interrupt would inherit that."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)

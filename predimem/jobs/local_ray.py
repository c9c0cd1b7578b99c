"""A Ray cluster of this process, on this machine."""

from __future__ import annotations

import logging
import math
import os
import signal
from typing import Any

# How long Ray's two programs may take to start. Its own limits, 30 s each, are too short for a machine that is busy.
PATIENCE_S = {"RAY_gcs_server_port_wait_time_s": "120", "RAY_raylet_start_wait_time_s": "120"}


def start_local_ray(cpus: float, gpus: float = 0.0) -> None:
    """Start a cluster of this size, which ends with `ray.shutdown()`. Raises ValueError where that fails.

    Its processes ignore SIGTERM, as Ray has them ignore SIGINT: whoever stops a service sends it to the whole process
    group, and without its cluster this process could not end what runs there. A SIGTERM that comes while the cluster
    starts counts when it has started. The environment variables in `PATIENCE_S` overrule it where they are set.
    """
    import ray

    for name, value in {"RAY_USAGE_STATS_ENABLED": "0", **PATIENCE_S}.items():
        os.environ.setdefault(name, value)
    size: dict[str, Any] = {"num_cpus": max(1, math.ceil(cpus))}
    if gpus:
        size["num_gpus"] = math.ceil(gpus)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})  # what Ray starts inherits it
    try:
        ray.init(address="local", include_dashboard=False, log_to_driver=False, logging_level=logging.WARNING, **size)
    except Exception as error:  # Ray says with a plain Exception that the machine is too busy
        raise ValueError(f"Ray cannot be started on this machine: {error}") from error
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)

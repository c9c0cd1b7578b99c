"""How a request ended, for the metrics: the same for a server with its own models and for a cluster's gateway."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from prometheus_client import Counter, Histogram

from predimem.serving.refusal import Refusal

log = logging.getLogger(__name__)


class Accounts(Protocol):
    @property
    def reply(self) -> Histogram: ...

    @property
    def rejected(self) -> Counter: ...


@contextmanager
def accounted(metrics: Accounts, arrived_s: float) -> Iterator[None]:
    """Around the answer to a request that arrived at `arrived_s` (`time.monotonic`). Raises Refusal for a refused
    one, and in place of any other error, which is logged: clients are told no details."""
    try:
        yield
    except Refusal as refusal:
        metrics.rejected.labels(refusal.code).inc()
        raise
    except Exception as error:
        log.exception("a request failed")
        metrics.rejected.labels("internal").inc()
        raise Refusal("internal", "a fault of the server; its log says more") from error
    metrics.reply.observe(time.monotonic() - arrived_s)

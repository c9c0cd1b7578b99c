"""A circuit breaker: while a server fails, callers are told so at once instead of waiting for it one by one."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

MAX_PAUSE_S = 60.0


class CircuitBreaker:
    """Opens after `failures` calls in a row have failed. After a pause one call tries again: it closes the breaker, or
    doubles the pause, up to a minute. Calls that were under way when it opened change nothing if they fail as well.
    Thread-safe.

    clock: seconds that only increase.
    """

    def __init__(self, failures: int, pause_s: float, clock: Callable[[], float] = time.monotonic):
        self._limit, self._first_pause_s, self._clock = failures, pause_s, clock
        self._lock = threading.Lock()
        self._failures, self._pause_s, self._closed_at_s, self._why = 0, pause_s, 0.0, ""
        self._trying = False

    def admit(self) -> str:
        """Why a call must not be made now; empty where it may. The caller says afterwards how it went."""
        with self._lock:
            if self._failures < self._limit:
                return ""
            now_s = self._clock()
            if now_s < self._closed_at_s:
                next_s = self._closed_at_s - now_s
                return f"{self._failures} requests failed in a row, the next is sent in {next_s:.1f} s ({self._why})"
            self._closed_at_s, self._trying = now_s + self._pause_s, True  # the others wait for how this one goes
            return ""

    def succeeded(self) -> None:
        with self._lock:
            self._failures, self._pause_s, self._why, self._trying = 0, self._first_pause_s, "", False

    def failed(self, why: str) -> None:
        with self._lock:
            self._failures += 1
            self._why = why
            if self._trying:
                self._pause_s = min(2 * self._pause_s, MAX_PAUSE_S)
            if self._trying or self._failures == self._limit:
                self._closed_at_s, self._trying = self._clock() + self._pause_s, False

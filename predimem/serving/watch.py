"""What a session did lately, for those who look on."""

from __future__ import annotations

import secrets
import threading
import time
from collections import deque
from collections.abc import Iterable
from statistics import median
from typing import Any

from predimem.core.types import Tick
from predimem.serving.store import StoredPlan

SPANS = 500  # subtasks that are listed
ANSWERS = 600  # of the planner, with their confidence
WINDOW_S = 5.0  # over which rates are counted
LATENCIES = 25


class EpisodeWatch:
    """What one session did lately, bounded whatever the episode's length.

    The thread that answers the robot writes it, and any other thread may read it.

    run: a new name for each beginning, so that a step of an episode that began anew is not taken for the old one.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.begin()

    def begin(self) -> None:
        """Forget everything: an episode begins."""
        with self._lock:
            self.run = secrets.token_hex(4)
            self._tick: Tick | None = None
            self._confidence: float | None = None
            self._error: str | None = None
            self._spans: deque[tuple[int, str]] = deque(maxlen=SPANS)
            self._answers: deque[tuple[int, float | None]] = deque(maxlen=ANSWERS)
            self._observations, self._s1, self._s2 = _Rate(), _Rate(), _Rate()

    def resume(self, plans: Iterable[StoredPlan]) -> None:
        """What was kept of an episode that goes on, after `begin`."""
        with self._lock:
            for plan in plans:
                self._note_subtask(plan.step, plan.subtask)
                self._answers.append((plan.step, plan.confidence))
                self._confidence = plan.confidence

    def note(self, tick: Tick) -> None:
        """One observation was answered."""
        now = time.monotonic()
        with self._lock:
            self._tick = tick
            self._observations.add(now)
            if tick.s1_latency_s is not None:
                self._s1.add(now, tick.s1_latency_s)
            if tick.plan_arrived:
                self._error = tick.plan_error
                if tick.plan_error is None:
                    self._s2.add(now, tick.s2_latency_s)
                    self._confidence = tick.plan_confidence
                    self._answers.append((tick.step, tick.plan_confidence))
            self._note_subtask(tick.step, tick.subtask)

    def view(self) -> dict[str, Any]:
        """What a session does now, as plain data.

        spans: [first step, subtask].
        answers: [step, confidence or null].
        The rates are per second.
        """
        now = time.monotonic()
        with self._lock:
            tick = self._tick
            return {
                "run": self.run,
                "step": None if tick is None else tick.step,
                "subtask": None if tick is None else tick.subtask or None,
                "plan_age_steps": None if tick is None else tick.plan_age_steps,
                "keyframes": [] if tick is None else list(tick.keyframe_steps),
                "held": tick is None or tick.held_action,
                "stale": tick is not None and tick.stale_action,
                "confidence": self._confidence,
                "plan_error": self._error,
                "spans": list(self._spans),
                "answers": [(step, c if c is None else round(c, 3)) for step, c in self._answers],
                "observations_hz": self._observations.hz(now),
                "s1_hz": self._s1.hz(now),
                "s2_hz": self._s2.hz(now),
                "s1_ms": self._s1.typical_ms(),
                "s2_ms": self._s2.typical_ms(),
            }

    def _note_subtask(self, step: int, subtask: str | None) -> None:
        if subtask and (not self._spans or self._spans[-1][1] != subtask):
            self._spans.append((step, subtask))


class _Rate:
    """How often something happens, and how long it takes. Times of `time.monotonic`."""

    def __init__(self) -> None:
        self._times: deque[float] = deque(maxlen=1000)
        self._latencies_s: deque[float] = deque(maxlen=LATENCIES)

    def add(self, now: float, latency_s: float | None = None) -> None:
        self._times.append(now)
        if latency_s is not None:
            self._latencies_s.append(latency_s)

    def hz(self, now: float) -> float:
        """Over the last seconds, or since the beginning where that is later."""
        while self._times and self._times[0] < now - WINDOW_S:
            self._times.popleft()
        if len(self._times) < 2:
            return 0.0
        return round((len(self._times) - 1) / max(now - self._times[0], 1e-3), 2)

    def typical_ms(self) -> float | None:
        return round(1000 * median(self._latencies_s), 2) if self._latencies_s else None

"""What a session did lately, for those who look on."""

from __future__ import annotations

import secrets
import threading
import time
from collections import deque
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np

from memory_bank.store import StoredEpisode
from predimem.core.types import Plan, Tick
from predimem.serving.clusters import ClusterChange, Nominations, cluster_changes
from predimem.serving.trajectory import RATE_S, Recorder, Trajectory, slowness

SPANS = 500  # subtasks that are listed
ANSWERS = 600  # of the planner, with their confidence
SAID = 20  # of them, those with their words
TEXT = 2000  # characters of an answer
CHANGES = 200  # of clusters of nominations
ROWS = 2400  # observations with state and action: two minutes at 20 Hz
WINDOW_S = 5.0  # over which rates are counted
LATENCIES = 25


@dataclass(frozen=True)
class Answered:
    """What the planner answered to the snapshot of a step. at_s: seconds since 1970."""

    step: int
    at_s: float
    subtask: str | None
    confidence: float | None
    latency_s: float | None
    keyframe_steps: tuple[int, ...]
    text: str
    error: str | None

    def numbers(self) -> list[Any]:
        """[step, confidence or null, milliseconds or null, whether it could be used]"""
        sure, took = self.confidence, self.latency_s
        ms = None if took is None else round(1000 * took, 1)
        return [self.step, None if sure is None else round(sure, 3), ms, self.error is None]

    def plain(self) -> dict[str, Any]:
        step, confidence, ms, _ = self.numbers()
        return {
            "step": step,
            "at_s": round(self.at_s, 3),
            "subtask": self.subtask,
            "confidence": confidence,
            "ms": ms,
            "nominated": list(self.keyframe_steps),
            "text": self.text,
            "error": self.error,
        }


def answers_of(stored: StoredEpisode) -> list[Answered]:
    """All that was kept of the planner's answers, oldest first, those that could not be used among them."""
    plans = [
        Answered(p.step, p.at_s or 0.0, p.subtask, p.confidence, p.latency_s, p.keyframe_steps, p.text, None)
        for p in stored.plans
    ]
    failures = [Answered(f.step, f.at_s, None, None, f.latency_s, (), f.text, f.error) for f in stored.failures]
    return sorted(plans + failures, key=lambda answer: answer.step)


class EpisodeWatch:
    """What one session did lately, bounded whatever the episode's length.

    The threads that answer the robot and that ask the planner write it, and any other thread may read it.

    control_hz: the rate that control should have; None where wall-clock time has no meaning (simulated time).
    run: a new name for each beginning, so that a step of an episode that began anew is not taken for the old one.
    began_s: when the episode began, in seconds since 1970.
    """

    def __init__(self, control_hz: float | None = None) -> None:
        self._control_hz = control_hz
        self._lock = threading.Lock()
        self._rows = Recorder(ROWS)
        self.begin()

    def begin(self) -> None:
        """Forget everything: an episode begins."""
        with self._lock:
            self.run = secrets.token_hex(4)
            self.began_s = time.time()
            self._tick: Tick | None = None
            self._confidence: float | None = None
            self._error: str | None = None
            self._spans: deque[tuple[int, str]] = deque(maxlen=SPANS)
            self._answers: deque[Answered] = deque(maxlen=ANSWERS)
            self._nominations: Nominations = ()
            self._changes: deque[ClusterChange] = deque(maxlen=CHANGES)
            self._steps: deque[tuple[float, int]] = deque(maxlen=1000)
            self._taken_s = time.monotonic()
            self._rows.clear()
            self._recalled: dict[str, Any] | None = None
            self._observations, self._s1, self._s2 = _Rate(), _Rate(), _Rate()

    def resume(self, stored: StoredEpisode) -> None:
        """What was kept of an episode that goes on, after `begin`."""
        with self._lock:
            self.began_s = stored.began_s or self.began_s
            for plan in stored.plans:
                self._note_subtask(plan.step, plan.subtask)
                self._confidence = plan.confidence
            self._answers.extend(answers_of(stored))

    def note_recalled(self, recalled: dict[str, Any]) -> None:
        """What was looked up in earlier sessions (`predimem.serving.recalled.plain`)."""
        with self._lock:
            self._recalled = recalled

    def note(self, tick: Tick, state: np.ndarray, action: np.ndarray, nominations: Nominations = ()) -> None:
        """One observation was answered. nominations: those behind each keyframe, as the memory bank gives them."""
        now, s1_s = time.monotonic(), tick.s1_latency_s
        with self._lock:
            self._tick = tick
            self._observations.add(now)
            self._steps.append((now, tick.step))
            self._rows.add(tick.step, time.time(), None if s1_s is None else 1000 * s1_s, state, action)
            if s1_s is not None:
                self._s1.add(now, s1_s)
            if tick.plan_arrived:
                self._error = tick.plan_error
                if tick.plan_error is None:
                    self._s2.add(now, tick.s2_latency_s)
                    self._confidence = tick.plan_confidence
            if nominations is not self._nominations:
                self._changes.extend(cluster_changes(tick.step, self._nominations, nominations))
                self._nominations = nominations
            self._note_subtask(tick.step, tick.subtask)

    def note_answer(self, plan: Plan, latency_s: float) -> Answered | None:
        """The planner answered, or could not; None where it could not for the same reason as the last time."""
        with self._lock:
            last = self._answers[-1] if self._answers else None
            if plan.error is not None and last is not None and (last.error, last.text) == (plan.error, plan.text):
                return None
            answer = Answered(
                plan.step,
                time.time(),
                plan.subtask,
                plan.confidence,
                latency_s,
                plan.keyframe_steps,
                plan.text[:TEXT],
                None if plan.error is None else plan.error[:TEXT],
            )
            self._answers.append(answer)
            return answer

    def take_trajectory(self, rows: int = 1, every_s: float = 0.0) -> Trajectory | None:
        """What came since the last time, where that is so many rows or so long ago; otherwise None."""
        now = time.monotonic()
        with self._lock:
            if self._rows.waiting < rows and (not self._rows.waiting or now - self._taken_s < every_s):
                return None
            self._taken_s = now
            return self._rows.take()

    def trajectory(self) -> Trajectory | None:
        """The last `ROWS` observations; None before the first one."""
        with self._lock:
            return self._rows.last(ROWS) if len(self._rows) else None

    def view(self) -> dict[str, Any]:
        """What a session does now, as plain data.

        spans: [first step, subtask].
        answers: see `Answered.numbers`; said: the last ones with their words.
        clusters: see `ClusterChange.plain`.
        The rates are per second; began_s and at_s are seconds since 1970.
        """
        now = time.monotonic()
        with self._lock:
            tick, newest = self._tick, self._rows.newest
            return {
                "run": self.run,
                "began_s": round(self.began_s, 3),
                "at_s": None if newest is None else round(newest[1], 3),
                "step": None if tick is None else tick.step,
                "subtask": None if tick is None else tick.subtask or None,
                "plan_age_steps": None if tick is None else tick.plan_age_steps,
                "keyframes": [] if tick is None else list(tick.keyframe_steps),
                "clusters": [change.plain() for change in self._changes],
                "held": tick is None or tick.held_action,
                "stale": tick is not None and tick.stale_action,
                "confidence": self._confidence,
                "plan_error": self._error,
                "slow": self._slowness(),
                "spans": list(self._spans),
                "answers": [answer.numbers() for answer in self._answers],
                "recalled": self._recalled,
                "said": [answer.plain() for answer in list(self._answers)[-SAID:]],
                "observations_hz": self._observations.hz(now),
                "s1_hz": self._s1.hz(now),
                "s2_hz": self._s2.hz(now),
                "s1_ms": self._s1.typical_ms(),
                "s2_ms": self._s2.typical_ms(),
            }

    def slowness(self) -> str | None:
        """A sentence where the last observations came below the robot's rate."""
        with self._lock:
            return self._slowness()

    def _slowness(self) -> str | None:
        if self._control_hz is None or not self._steps:
            return None
        now, (last_s, last) = time.monotonic(), self._steps[-1]
        if last_s < now - WINDOW_S:
            return None  # idle
        first_s, first = next(entry for entry in self._steps if entry[0] >= last_s - RATE_S)
        s1_share = self._s1.hz(now) * (self._s1.typical_ms() or 0.0) / 1000
        return slowness(last - first, last_s - first_s, self._control_hz, s1_share)

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

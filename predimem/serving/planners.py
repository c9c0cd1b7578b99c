"""S2 as the sessions see it: one planner for all of them, and never an exception.

What goes wrong becomes a plan without a subtask that says why: the agent keeps its last subtask and S1 goes on.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Protocol

from predimem.core.types import MemorySnapshot, Plan
from predimem.serving.batches import Batches, Cancellation, QueueFull, Stopped, TooLate
from predimem.serving.config import BatchConfig
from predimem.serving.metrics import Metrics
from predimem.serving.planner_process import PlannerGone, PlannerProcess

log = logging.getLogger(__name__)


class SharedPlanner(Protocol):
    """A planner that several sessions ask at once; see `BatchedPlanner` and `WholeTaskPlanner`."""

    def plan(self, snapshot: MemorySnapshot, cancellation: Cancellation) -> Plan: ...

    def foresee(self, upcoming: MemorySnapshot) -> None:
        """Say what is known of the next question of an episode. Never blocks."""
        ...

    def forget(self, episode_id: str) -> None:
        """There will be no more questions about an episode. Never blocks."""
        ...

    @property
    def trouble(self) -> str:
        """Why there are no plans at the moment; empty where there are."""
        ...

    @property
    def depth(self) -> int: ...

    def close(self) -> None: ...


class BatchedPlanner:
    """A `SharedPlanner` that asks one planner process for the plans of several sessions at once, in batches."""

    def __init__(self, process: PlannerProcess, sessions: int, batches: BatchConfig, wait_s: float, metrics: Metrics):
        self._process = process
        self._wait_s = wait_s
        self._metrics = metrics
        self._batches: Batches[MemorySnapshot, Plan] = Batches(
            self._answer, "s2", sessions, batches, self._work_ahead, self._leave_off
        )

    @property
    def trouble(self) -> str:
        state = self._process.state
        return "" if state == "ready" else f"the planner is {state}"

    @property
    def depth(self) -> int:
        return self._batches.depth

    def plan(self, snapshot: MemorySnapshot, cancellation: Cancellation) -> Plan:
        """Blocks; returns at the latest after the time that S2 has, or when the caller calls it off."""
        try:
            return self._batches.call(snapshot, time.monotonic() + self._wait_s, cancellation)
        except (QueueFull, TooLate, Stopped, PlannerGone) as error:
            return no_plan(snapshot, str(error))
        except Exception as error:
            log.exception("the planner's answer cannot be used", extra={"episode_id": snapshot.episode_id})
            return no_plan(snapshot, f"the planner's answer cannot be used ({type(error).__name__})")

    def foresee(self, upcoming: MemorySnapshot) -> None:
        if self._process.works_ahead:
            self._batches.foresee(upcoming.episode_id, upcoming)

    def forget(self, episode_id: str) -> None:
        self._batches.foresee(episode_id, None)
        self._process.forget(episode_id)

    def close(self) -> None:
        self._batches.close()
        self._process.close()

    def _work_ahead(self, upcoming: MemorySnapshot) -> None:
        try:
            self._process.prepare(upcoming)
        except PlannerGone as gone:
            log.info("nothing was prepared: %s", gone)

    def _leave_off(self, now: bool) -> None:
        (self._process.leave_off if now else self._process.go_on)()

    def _answer(self, snapshots: list[MemorySnapshot]) -> list[Plan | Exception]:
        began_s = time.perf_counter()
        plans = self._process.plan(snapshots)
        self._metrics.s2_latency.observe(time.perf_counter() - began_s)
        self._metrics.s2_batch.observe(len(snapshots))
        return plans


class WholeTaskPlanner:
    """A `SharedPlanner` for a reactive policy, which has no planner: the subtask is the whole task."""

    trouble = ""
    depth = 0

    def plan(self, snapshot: MemorySnapshot, cancellation: Cancellation) -> Plan:
        return Plan(snapshot.episode_id, snapshot.step, snapshot.instruction)

    def foresee(self, upcoming: MemorySnapshot) -> None:
        pass

    def forget(self, episode_id: str) -> None:
        pass

    def close(self) -> None:
        pass


class SessionPlanner:
    """Implements `StreamingPlanner` for one session's worker.

    keep: stores a plan before anybody uses it, or notes why there is none; it is told the seconds that the planner
    took.
    """

    def __init__(self, shared: SharedPlanner, keep: Callable[[MemorySnapshot, Plan, float], None], metrics: Metrics):
        self._shared = shared
        self._keep = keep
        self._metrics = metrics
        self._cancellation = Cancellation()

    def plan(self, snapshot: MemorySnapshot) -> Plan:
        began_s = time.perf_counter()
        plan = self._shared.plan(snapshot, self._cancellation)
        if plan.error is not None:
            self._metrics.s2_errors.inc()
            if self._cancellation.cancelled:
                return plan
        try:
            self._keep(snapshot, plan, time.perf_counter() - began_s)
        except Exception:
            log.exception("a plan cannot be stored, so it is not used", extra={"episode_id": snapshot.episode_id})
            self._metrics.store_errors.inc()
            return plan if plan.error is not None else no_plan(snapshot, "the plan cannot be stored")
        return plan

    def prepare(self, upcoming: MemorySnapshot, interrupted: Callable[[], bool]) -> bool:
        """Pass it on: the planner prepares it when no session has a question."""
        self._shared.foresee(upcoming)
        return False

    def forget(self, episode_id: str) -> None:
        self._shared.forget(episode_id)

    def call_off(self) -> None:
        """End an answer that is waited for, and give no further ones until `go_on`."""
        self._cancellation.cancel()

    def go_on(self) -> None:
        self._cancellation.clear()

    def end(self) -> None:
        """Let go of `keep`, and so of the session: the two would hold each other, and the session's images, until a
        full garbage collection, which hardly ever comes in a process with torch's many objects."""
        self._keep = _keep_nothing


def _keep_nothing(snapshot: MemorySnapshot, plan: Plan, latency_s: float) -> None:
    raise Stopped("the session has ended")


def no_plan(snapshot: MemorySnapshot, why: str) -> Plan:
    return Plan(snapshot.episode_id, snapshot.step, None, error=why)

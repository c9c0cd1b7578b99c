"""The planner beside the control loop: one background thread, one slot, the latest snapshot wins."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass

from predimem.agent.clock import Clock
from predimem.core.interfaces import Planner, StreamingPlanner
from predimem.core.types import MemorySnapshot, Plan


class PlannerFailure(RuntimeError):
    """The planner raised: the episode is an error, not a failure of the policy."""


@dataclass(frozen=True)
class Answer:
    plan: Plan
    latency_s: float


class PlannerWorker:
    """`submit` never blocks; `latest` gives each answer once.

    With a clock that fixes S2's latency (simulated time) a plan is released exactly at its step:
    the control loop waits for the thread if the machine is slower than that, and holds the answer
    back if it is faster. In real time the answer is released as soon as it is there, and a `StreamingPlanner` works
    ahead in the time between; it leaves off when there is a question.
    """

    def __init__(self, planner: Planner, clock: Clock):
        self._planner = planner
        self._streaming = planner if isinstance(planner, StreamingPlanner) else None
        self._clock = clock
        self._condition = threading.Condition()
        self._slot: MemorySnapshot | None = None
        self._ahead: MemorySnapshot | None = None  # what the next question will be about
        self._foreseen: MemorySnapshot | None = None  # the last one that was worked ahead for, or will be
        self._episode_id: str | None = None
        self._running = False
        self._leave_off = False
        self._due_step: int | None = None
        self._answer: Answer | None = None
        self._failure: BaseException | None = None
        self._closed = False
        self._thread = threading.Thread(target=self._work, name="predimem-s2", daemon=True)
        self._thread.start()

    @property
    def works_ahead(self) -> bool:
        """Whether `foresee` is of use: in simulated time it would cost what it saves."""
        return self._streaming is not None and self._clock.s2_ready_step(0) is None

    def reset(self) -> None:
        """Forget what is queued; wait for an answer still being computed and throw it away."""
        with self._condition:
            self._slot = self._ahead = self._foreseen = None
            self._leave_off = True
            while self._running:
                self._condition.wait()
            self._leave_off = False
            self._answer = self._failure = self._due_step = None
            self._forget()

    def submit(self, snapshot: MemorySnapshot) -> None:
        """Offer the freshest snapshot. It replaces one that the planner has not begun with."""
        with self._condition:
            if self._due_step is not None:
                return  # simulated time: S2 is busy until its step; a fresher snapshot will follow
            self._due_step = self._clock.s2_ready_step(snapshot.step)
            self._slot, self._episode_id = snapshot, snapshot.episode_id
            self._condition.notify_all()

    def foresee(self, snapshot: MemorySnapshot) -> None:
        """Say what the next question will be about, as far as it is known (`FullMemory.upcoming`). It never blocks, and
        what is said again costs nothing."""
        with self._condition:
            before, self._foreseen = self._foreseen, snapshot
            if before is None or not _alike(before, snapshot):
                self._ahead = snapshot
                self._condition.notify_all()

    def latest(self, step: int) -> Answer | None:
        """The answer that has arrived by control step `step`, if any. Raises PlannerFailure."""
        with self._condition:
            if self._due_step is not None:
                if step < self._due_step:
                    return None
                while self._answer is None and self._failure is None:
                    self._condition.wait()
                self._due_step = None
            if self._failure is not None:
                failure, self._failure = self._failure, None
                raise PlannerFailure(f"the planner failed: {failure!r}") from failure
            answer, self._answer = self._answer, None
            return answer

    def settle(self) -> None:
        """Wait until the planner has answered what was submitted, or has failed."""
        with self._condition:
            while self._slot is not None or self._running:
                self._condition.wait()

    def close(self) -> None:
        with self._condition:
            self._closed = True
            self._condition.notify_all()
        self._thread.join()
        self._forget()

    def _forget(self) -> None:
        if self._streaming is not None and self._episode_id is not None:
            self._streaming.forget(self._episode_id)
        self._episode_id = None

    def _work(self) -> None:
        while True:
            with self._condition:
                while self._slot is None and self._ahead is None and not self._closed:
                    self._condition.wait()
                if self._closed:
                    return
                snapshot, ahead, self._running = self._slot, self._ahead, True
                self._slot, self._ahead = None, ahead if snapshot is not None else None
            answer, failure, began_s = None, None, time.perf_counter()
            try:
                if snapshot is not None:
                    answer = Answer(self._planner.plan(snapshot), time.perf_counter() - began_s)
                elif ahead is not None and self._streaming is not None:
                    self._streaming.prepare(ahead, self._has_other_work)
            except BaseException as error:  # handed to the control thread, which raises it; SystemExit as well
                failure = error
            with self._condition:
                self._answer, self._failure = answer or self._answer, failure or self._failure
                self._running = False
                self._condition.notify_all()

    def _has_other_work(self) -> bool:
        return self._slot is not None or self._leave_off or self._closed


def _alike(one: MemorySnapshot, other: MemorySnapshot) -> bool:
    """Whether they show the same; frames are compared by identity."""
    names = ("episode_id", "instruction", "recent", "keyframes", "past_subtasks", "past_sessions")
    return all(getattr(one, name) == getattr(other, name) for name in names)

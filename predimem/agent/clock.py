"""Time as an argument: simulated time charges latencies in control steps, real time just passes.

In simulated time a run on a slow machine gives the same result as on a fast one, and asynchrony can
be studied by setting the latencies.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Literal, Protocol


class Clock(Protocol):
    """When answers count as there, in control steps, and when a tick may begin."""

    def s1_ready_step(self, asked_step: int) -> int:
        """The first step at which an action chunk asked for at `asked_step` can be executed."""
        ...

    def s2_ready_step(self, asked_step: int) -> int | None:
        """The step at which a plan asked for at `asked_step` arrives; None: whenever it is there."""
        ...

    def begin_tick(self, step: int) -> None:
        """Called at the start of every control step; in real time it waits for the step's due time."""
        ...


@dataclass(frozen=True)
class SimulatedClock:
    """S1 and S2 answers arrive a fixed number of control steps after they were asked for."""

    s1_latency_steps: int = 1
    s2_latency_steps: int = 2

    def __post_init__(self) -> None:
        if self.s1_latency_steps < 0 or self.s2_latency_steps < 0:
            raise ValueError(
                f"latencies are control steps >= 0, got S1 {self.s1_latency_steps}, S2 {self.s2_latency_steps}"
            )

    def s1_ready_step(self, asked_step: int) -> int:
        return asked_step + self.s1_latency_steps

    def s2_ready_step(self, asked_step: int) -> int | None:
        return asked_step + self.s2_latency_steps

    def begin_tick(self, step: int) -> None:
        pass


class RealClock:
    """Wall-clock time at `control_hz`. S1 answers inside the tick; S2 arrives when it arrives.

    A tick that begins late (a simulator slower than real time) is not caught up with.
    """

    def __init__(self, control_hz: float):
        self._period_s = 1.0 / control_hz
        self._due_s = 0.0

    def s1_ready_step(self, asked_step: int) -> int:
        return asked_step

    def s2_ready_step(self, asked_step: int) -> int | None:
        return None

    def begin_tick(self, step: int) -> None:
        now = time.perf_counter()
        if step > 0 and now < self._due_s:
            time.sleep(self._due_s - now)
        self._due_s = max(now, self._due_s if step > 0 else now) + self._period_s


@dataclass(frozen=True)
class TimeConfig:
    """mode `simulated` (repeatable) or `real` (wall clock); the latencies are for simulated time.

    A plan counts at the step after its observation at the earliest, so that S2's latencies 0 and 1 are the same.
    """

    mode: Literal["simulated", "real"] = "simulated"
    s1_latency_steps: int = 1
    s2_latency_steps: int = 2

    def __post_init__(self) -> None:
        SimulatedClock(self.s1_latency_steps, self.s2_latency_steps)  # checks them

    def make_clock(self, control_hz: float) -> Clock:
        if self.mode == "real":
            return RealClock(control_hz)
        return SimulatedClock(self.s1_latency_steps, self.s2_latency_steps)

"""Progress of a run of episodes: how many were kept, how fast, and why the others were not."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable
from typing import TextIO

from predimem.core.progress import Bar
from predimem.jobs.tasks import Outcome


class Progress:
    """Counts all outcomes; the rate and the time left are those of this session's work.

    total: how many jobs the whole run has.
    before: the outcomes of earlier sessions.
    at_once: how many workers there are.
    clock, ticking: see `Bar`.
    """

    def __init__(
        self,
        total: int,
        before: Iterable[Outcome],
        at_once: int = 1,
        stream: TextIO | None = None,
        clock: Callable[[], float] = time.monotonic,
        ticking: bool = True,
    ):
        self._clock = clock
        self._began_s = clock()
        self._kept = self._attempted = self._kept_now = 0
        self._causes: Counter[str] = Counter()
        for outcome in before:
            self._count(outcome)
        stream = stream or sys.stderr
        self._bar = Bar(
            total, "episodes", done=self._attempted, at_once=at_once, stream=stream, clock=clock, ticking=ticking
        )
        self._bar.show(self.counts())

    def add(self, outcome: Outcome) -> None:
        self._count(outcome)
        self._kept_now += outcome.kept
        self._bar.add(text=self.counts())

    def note(self, text: str) -> None:
        """Print `text` without tearing the bar."""
        self._bar.note(text)

    def close(self) -> None:
        self._bar.show(self.counts())
        self._bar.close()

    def line(self) -> str:
        """Such as "12 of 208 episodes, about 3 h 1 min left: kept 11 of 12, 62 kept/hour; dropped it 1"."""
        return self._bar.line()

    def counts(self) -> str:
        causes = "".join(f"; {cause} {count}" for cause, count in self._causes.most_common(5))
        return f"kept {self._kept} of {self._attempted}, {self.kept_per_hour:.0f} kept/hour{causes}"

    @property
    def kept_per_hour(self) -> float:
        return 3600 * self._kept_now / max(self._clock() - self._began_s, 1e-9)

    @property
    def left_s(self) -> float | None:
        """The time that the jobs still open will take; None while that is not known."""
        return self._bar.left_s

    def _count(self, outcome: Outcome) -> None:
        self._attempted += 1
        self._kept += outcome.kept
        if outcome.cause:
            self._causes[outcome.cause] += 1

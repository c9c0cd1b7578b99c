"""Progress of a run: a bar in a terminal, a line every half minute elsewhere."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable
from datetime import timedelta
from typing import TextIO

from predimem.jobs.tasks import Outcome

LINE_EVERY_S = 30.0


class Progress:
    """Counts all outcomes; the rate and the time left are those of this session's work.

    total: how many jobs the whole run has.
    before: the outcomes of earlier sessions.
    clock: seconds, monotonic.
    """

    def __init__(
        self,
        total: int,
        before: Iterable[Outcome],
        stream: TextIO = sys.stderr,
        clock: Callable[[], float] = time.monotonic,
    ):
        self._total = total
        self._stream = stream
        self._clock = clock
        self._began_s = clock()
        self._printed_s = self._began_s
        self._kept = self._attempted = self._kept_now = self._attempted_now = 0
        self._causes: Counter[str] = Counter()
        for outcome in before:
            self._count(outcome)
        self._bar = None
        if stream.isatty():
            from tqdm import tqdm

            self._bar = tqdm(
                total=total, initial=self._attempted, unit="episode", smoothing=0, dynamic_ncols=True, file=stream,
                bar_format="{percentage:3.0f}% |{bar}| {n_fmt}/{total_fmt} [{elapsed}<{remaining}]{postfix}",
            )  # fmt: skip

    def add(self, outcome: Outcome) -> None:
        self._count(outcome)
        self._attempted_now += 1
        self._kept_now += outcome.kept
        if self._bar is not None:
            self._bar.set_postfix_str(self.counts(), refresh=False)
            self._bar.update()
        elif self._clock() - self._printed_s >= LINE_EVERY_S:
            self._print(self.line())

    def note(self, text: str) -> None:
        """Print `text` without tearing the bar."""
        if self._bar is not None:
            self._bar.write(text, file=self._stream)
        else:
            self._print(text)

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()
        else:
            self._print(self.line())

    def line(self) -> str:
        """Such as "12 of 208 episodes, 3:01:20 left: kept 11 of 12, 62 kept/hour; dropped it 1"."""
        left = f", {timedelta(seconds=round(self.left_s))} left" if 0 < self._attempted_now < self._open else ""
        return f"{self._attempted} of {self._total} episodes{left}: {self.counts()}"

    def counts(self) -> str:
        causes = "".join(f"; {cause} {count}" for cause, count in self._causes.most_common(5))
        return f"kept {self._kept} of {self._attempted}, {self.kept_per_hour:.0f} kept/hour{causes}"

    @property
    def kept_per_hour(self) -> float:
        return 3600 * self._kept_now / self._elapsed_s

    @property
    def left_s(self) -> float:
        """The time that the jobs still open will take at the rate of this session; needs one outcome."""
        return (self._total - self._attempted) * self._elapsed_s / self._attempted_now

    @property
    def _open(self) -> int:
        """Jobs of this session, done or not."""
        return self._total - self._attempted + self._attempted_now

    @property
    def _elapsed_s(self) -> float:
        return max(self._clock() - self._began_s, 1e-9)

    def _count(self, outcome: Outcome) -> None:
        self._attempted += 1
        self._kept += outcome.kept
        if outcome.cause:
            self._causes[outcome.cause] += 1

    def _print(self, text: str) -> None:
        print(text, file=self._stream, flush=True)
        self._printed_s = self._clock()

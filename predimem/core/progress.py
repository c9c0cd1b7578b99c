"""What a command shows on standard error while it works: the stages of its start, and how far it has got.

In a terminal a bar is drawn in place. In a file or a pipe it is a line now and then: an early one, then one every 25 s
in the first ten minutes, when somebody watches, then one a minute. The lines and the bar go on while nothing gets done,
so that a slow item is not taken for a dead program.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any, ClassVar, TextIO, TypeVar

FIRST_LINE_S = 5.0
EARLY_LINE_EVERY_S, EARLY_S = 25.0, 600.0
LINE_EVERY_S = 60.0
TICK_S = 0.5
ITEMS_FOR_A_RATE = 2  # done after those that each worker began with, which include its start
SECONDS_FOR_A_RATE = 1.0

Clock = Callable[[], float]
T = TypeVar("T")


class _Shown:
    """Where this process shows its progress. stream: None stands for standard error; report: a worker process sends
    its stages there in place of showing them."""

    stream: TextIO | None = None
    report: Callable[[str], object] | None = None
    announced: ClassVar[set[str]] = set()


def show_on(stream: TextIO | None) -> None:
    """Show the stages and bars of this process there from now on; None is standard error, as at the beginning."""
    _Shown.stream = stream


def report_to(report: Callable[[str], object]) -> None:
    """This process is a worker: `report` is told of its stages, and sends them to the process that shows them."""
    _Shown.report = report


def announce(text: str) -> None:
    """Show a stage that a worker has begun. The same stage of the other workers is not shown again."""
    if text not in _Shown.announced:
        _Shown.announced.add(text)
        say(text)


def say(text: str, stream: TextIO | None = None) -> None:
    """Print a line without tearing a bar."""
    stream = _stream(stream)
    if "tqdm" in sys.modules:
        from tqdm import tqdm

        tqdm.write(text, file=stream)
        stream.flush()
    else:
        print(text, file=stream, flush=True)


@contextmanager
def stage(text: str, stream: TextIO | None = None, every_s: float = EARLY_LINE_EVERY_S) -> Iterator[None]:
    """Say what begins ("starting SAPIEN"), and again every 25 s how long it has taken so far."""
    if _Shown.report is not None:
        _Shown.report(text)
        yield
        return
    _Shown.announced.add(text)
    say(text, stream)
    began_s, over = time.monotonic(), threading.Event()

    def remind() -> None:
        while not over.wait(every_s):
            say(f"{text}: {duration(time.monotonic() - began_s)} so far", stream)

    threading.Thread(target=remind, name="stage", daemon=True).start()
    try:
        yield
    finally:
        over.set()


def duration(seconds: float) -> str:
    """As somebody would say it: "40 s", "12 min", "3 h 10 min"."""
    if seconds < 99.5:
        return f"{max(0, round(seconds))} s"
    minutes = round(seconds / 60)
    if minutes < 100:
        return f"{minutes} min"
    return f"{minutes // 60} h {minutes % 60} min"


class Bar:
    """How much of some work is done, and how long the rest will take.

    The time left is not told before a few items are done. It does not count the first item of each worker, which
    includes the start of a simulator or of models.

    total: how many items there are; None if nobody knows. done: how many of them earlier sessions have done.
    unit: what an item is, in the plural. title: what is being done.
    at_once: how many items are worked on side by side.
    delay_s: work that takes less than this is not shown.
    shown: False shows nothing.
    clock: seconds, monotonic. ticking: whether a thread keeps the bar alive while nothing gets done.
    """

    def __init__(
        self,
        total: int | None,
        unit: str,
        title: str = "",
        done: int = 0,
        at_once: int = 1,
        delay_s: float = 0.0,
        shown: bool = True,
        stream: TextIO | None = None,
        clock: Clock = time.monotonic,
        ticking: bool = True,
    ):
        self.done, self._before, self._total = done, done, total
        self.unit, self._title, self._text = unit, title, ""
        self._at_once, self._delay_s, self._shown = at_once, delay_s, shown
        self._stream, self._clock = _stream(stream), clock
        self._began_s = self._last_s = clock()
        self._first: tuple[int, float] | None = None  # items done when all workers were under way, and when
        self._printed_s: float | None = None
        self._lock, self._over = threading.RLock(), threading.Event()
        self._drawn: Any = None
        if shown and self._stream.isatty():
            self._drawn = _draw(self, total, done, title, delay_s, self._stream)
        if shown and ticking:
            threading.Thread(target=self._keep_alive, name="progress", daemon=True).start()

    def add(self, count: int = 1, text: str | None = None) -> None:
        """So many more items are done. text: what is shown behind the numbers from now on."""
        with self._lock:
            self.done += count
            self._last_s = self._clock()
            self._text = self._text if text is None else text
            if self._first is None and self.done - self._before >= self._at_once:
                self._first = self.done, self._last_s
            if self._drawn is not None:
                self._drawn.update(count)
        self.tick()

    def show(self, text: str) -> None:
        """What is shown behind the numbers from now on."""
        self._text = text

    def note(self, text: str) -> None:
        """Print a line of its own."""
        if self._shown:
            say(text, self._stream)

    def tick(self) -> None:
        """Show how it stands, if it is time to."""
        with self._lock:
            if self._drawn is None and not self._over.is_set() and self._is_due():
                self._print()

    def close(self) -> None:
        with self._lock:
            if self._over.is_set():
                return
            self._over.set()
            if self._drawn is not None:
                self._drawn.close()
            elif self._shown and (self._printed_s is not None or self.elapsed_s >= self._delay_s):
                self._print()

    @property
    def elapsed_s(self) -> float:
        return self._clock() - self._began_s

    @property
    def left_s(self) -> float | None:
        """The time that the rest will take, or None while that is not known."""
        if self._total is None or self._first is None or self.done >= self._total:
            return None
        count, first_s = self._first
        took_s = self._last_s - first_s
        if self.done - count < max(ITEMS_FOR_A_RATE, self._at_once) or took_s < SECONDS_FOR_A_RATE:
            return None
        expected_s = (self._total - self.done) * took_s / (self.done - count)
        return max(0.0, expected_s - (self._clock() - self._last_s))

    @property
    def time(self) -> str:
        """Such as "about 4 min left", or "50 s so far" while the rest is not known."""
        left_s = self.left_s
        if left_s is not None:
            return f"about {duration(left_s)} left"
        return f"{duration(self.elapsed_s)} so far" if self.done != self._total else f"in {duration(self.elapsed_s)}"

    def line(self) -> str:
        """Such as "12 of 208 episodes, about 4 min left: predimem 9/12"."""
        title = f"{self._title}: " if self._title else ""
        of = "" if self._total is None else f" of {self._total}"
        return f"{title}{self.done}{of} {self.unit}, {self.time}{self.text}"

    @property
    def text(self) -> str:
        return f": {self._text}" if self._text else ""

    def __enter__(self) -> Bar:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _is_due(self) -> bool:
        if not self._shown:
            return False
        now_s = self._clock()
        if self._printed_s is None:
            return now_s - self._began_s >= max(FIRST_LINE_S, self._delay_s)
        early = now_s - self._began_s < EARLY_S
        return now_s - self._printed_s >= (EARLY_LINE_EVERY_S if early else LINE_EVERY_S)

    def _print(self) -> None:
        say(self.line(), self._stream)
        self._printed_s = self._clock()

    def _keep_alive(self) -> None:
        while not self._over.wait(TICK_S):
            if self._drawn is not None:
                self._drawn.refresh()
            else:
                self.tick()


def watched(items: Iterable[T], total: int, unit: str, title: str = "", **options: Any) -> Iterator[T]:
    """The items, shown with a bar (`Bar`, which explains the options) as they are taken."""
    with Bar(total, unit, title, **options) as bar:
        for item in items:
            yield item
            bar.add()


def _stream(stream: TextIO | None) -> TextIO:
    return stream or _Shown.stream or sys.stderr


def _draw(bar: Bar, total: int | None, done: int, title: str, delay_s: float, stream: TextIO) -> Any:
    """A bar of tqdm's that shows our own estimate of the time left."""
    from tqdm import tqdm

    class Drawn(tqdm):
        @property
        def format_dict(self) -> dict[str, Any]:
            return {**super().format_dict, "time": bar.time, "text": bar.text}

    counted = "{desc}{n_fmt} " if total is None else "{desc}{percentage:3.0f}% |{bar}| {n_fmt}/{total_fmt} "
    return Drawn(
        desc=f"{title}: " if title else "",
        total=total,
        initial=done,
        file=stream,
        delay=delay_s,
        dynamic_ncols=True,
        smoothing=0,
        bar_format=counted + bar.unit + ", {time}{text}",
    )

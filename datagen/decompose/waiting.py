"""Says on a terminal, or in a log, which model is being asked and for how long already."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TextIO

LINE_EVERY_S = 20.0

Waiting = Callable[[str, float], None]  # what is being done, and since how many seconds


def silent(what: str, elapsed_s: float) -> None:
    """For tests, and where somebody else tells how things go."""


class OnScreen:
    """A line that counts the seconds in a terminal; elsewhere a line at once and then every 20 s.

    at_once: whether a line that is no terminal's is written as soon as something begins.
    """

    def __init__(self, stream: TextIO | None = None, terminal: bool | None = None, at_once: bool = True):
        self._stream = sys.stderr if stream is None else stream
        self._terminal = self._stream.isatty() if terminal is None else terminal
        self._at_once = at_once
        self._what = ""
        self._last_s = self._next_s = 0.0
        self._width = 0

    def __call__(self, what: str, elapsed_s: float) -> None:
        if self._terminal:
            line = f"{what} ... {elapsed_s:.0f} s"
            self._stream.write(f"\r{line:<{self._width}}")
            self._width = len(line)
        else:
            if what != self._what or elapsed_s < self._last_s:
                self._what, self._next_s = what, 0.0 if self._at_once else LINE_EVERY_S
            self._last_s = elapsed_s
            if elapsed_s < self._next_s:
                return
            self._stream.write(f"{what} ...{f' {elapsed_s:.0f} s' if elapsed_s >= 1 else ''}\n")
            self._next_s += LINE_EVERY_S
        self._stream.flush()

    def done(self) -> None:
        """Clear the line of a terminal."""
        if self._width:
            self._stream.write(f"\r{'':<{self._width}}\r")
            self._stream.flush()
            self._width = 0

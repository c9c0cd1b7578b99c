"""Rates and times left from a clock of the test's own; a terminal and a file."""

from __future__ import annotations

import io

import pytest

from predimem.jobs.progress import Progress
from predimem.jobs.tasks import Outcome


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def outcome(seed: int, cause: str = "") -> Outcome:
    return Outcome("Pour", seed, kept=not cause, cause=cause)


def test_rates_are_those_of_this_session() -> None:
    now, stream = [1000.0], io.StringIO()
    before = [outcome(1), outcome(2, "dropped it")]
    progress = Progress(10, before, stream=stream, clock=lambda: now[0], ticking=False)
    assert progress.line() == "2 of 10 episodes, 0 s so far: kept 1 of 2, 0 kept/hour; dropped it 1"
    for seed, cause in ((3, ""), (4, ""), (5, "dropped it"), (6, "no grasp")):
        now[0] += 9.0
        progress.add(outcome(seed, cause))
    assert progress.kept_per_hour == pytest.approx(200)
    assert progress.left_s == pytest.approx(36)
    assert progress.line() == "6 of 10 episodes, about 36 s left: kept 3 of 6, 200 kept/hour; dropped it 2; no grasp 1"


def test_a_file_gets_lines_of_counts_and_one_at_the_end() -> None:
    now, stream = [0.0], io.StringIO()
    progress = Progress(200, [], stream=stream, clock=lambda: now[0], ticking=False)
    for seed in range(200):
        now[0] += 1.0
        progress.add(outcome(seed))
    progress.close()
    lines = stream.getvalue().splitlines()
    assert len(lines) == 9
    assert lines[1] == "30 of 200 episodes, about 3 min left: kept 30 of 30, 3600 kept/hour"
    assert lines[-1] == "200 of 200 episodes, in 3 min: kept 200 of 200, 3600 kept/hour"


def test_a_terminal_gets_a_bar() -> None:
    stream = Terminal()
    progress = Progress(4, [outcome(1)], stream=stream)
    progress.add(outcome(2, "no grasp"))
    progress.note("Pour seed 2: look here")
    progress.close()
    text = stream.getvalue()
    assert "2/4" in text and "kept 1 of 2" in text and "no grasp 1" in text and "Pour seed 2: look here\n" in text

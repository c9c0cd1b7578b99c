"""Lines, bars and times left, from a clock of the test's own; a terminal and a file; stages."""

from __future__ import annotations

import io
import itertools
import subprocess
import sys
import time
from pathlib import Path

import pytest

from predimem.core import progress
from predimem.core.progress import Bar, duration, say, stage, watched

ROOT = Path(__file__).parents[2]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Clock:
    def __init__(self) -> None:
        self.now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


def make_bar(total: int | None, **options) -> tuple[Bar, Clock, io.StringIO]:
    clock, stream = Clock(), io.StringIO()
    return Bar(total, "episodes", stream=stream, clock=clock, ticking=False, **options), clock, stream


def after(bar: Bar, clock: Clock, seconds: float) -> str:
    clock.now_s += seconds
    bar.add()
    return bar.time


def test_the_time_left_does_not_count_the_slow_first_episode() -> None:
    bar, clock, _ = make_bar(20)
    assert after(bar, clock, 60) == "60 s so far"  # with the start of the simulator
    assert after(bar, clock, 10) == "70 s so far"
    assert after(bar, clock, 10) == "about 3 min left"
    assert bar.left_s == 17 * 10
    clock.now_s += 8
    assert bar.left_s == 17 * 10 - 8  # it goes on while an episode is played


def test_the_first_episode_of_each_worker_is_a_slow_one() -> None:
    bar, clock, _ = make_bar(30, at_once=2)
    for seconds in (60, 1, 20):
        assert "so far" in after(bar, clock, seconds)
    after(bar, clock, 0)
    assert bar.left_s == 26 * 10  # two in 20 s


def test_a_resumed_run_counts_the_time_of_this_session() -> None:
    bar, clock, _ = make_bar(100, done=90)
    for seconds in (30, 5, 5):
        after(bar, clock, seconds)
    assert bar.left_s == 7 * 5 and bar.line() == "93 of 100 episodes, about 35 s left"


def test_a_file_gets_an_early_line_then_one_every_25_s_then_one_a_minute() -> None:
    bar, clock, stream = make_bar(10_000)
    times = []
    for second in range(1, 1201):
        clock.now_s += 1
        before = len(stream.getvalue())
        bar.tick()  # nothing gets done
        if len(stream.getvalue()) > before:
            times.append(second)
    assert times[:4] == [5, 30, 55, 80]
    gaps = [b - a for a, b in itertools.pairwise(times)]
    assert all(gap == 25 for gap, at in zip(gaps, times[1:], strict=True) if at < 600)
    assert gaps[-5:] == [60] * 5
    assert stream.getvalue().splitlines()[1] == "0 of 10000 episodes, 30 s so far" and "\r" not in stream.getvalue()


def test_the_last_line_says_how_long_it_took() -> None:
    bar, clock, stream = make_bar(3, title="playing")
    for _ in range(3):
        after(bar, clock, 1)
    bar.show("predimem 3/3")
    bar.close()
    bar.close()
    assert stream.getvalue() == "playing: 3 of 3 episodes, in 3 s: predimem 3/3\n"


def test_what_is_quick_is_not_shown() -> None:
    bar, clock, stream = make_bar(3, delay_s=3)
    after(bar, clock, 2)
    bar.close()
    assert stream.getvalue() == ""


def test_a_terminal_gets_a_bar_that_is_drawn_in_place() -> None:
    stream, clock = Terminal(), Clock()
    with Bar(40, "episodes", title="playing", stream=stream, clock=clock, ticking=False) as bar:
        for seconds in (60, 10, 10, 10):
            after(bar, clock, seconds)
        bar.note("seed 7: look here")
        bar.show("predimem 4/4")
    text = stream.getvalue()
    assert "playing: " in text and "4/40 episodes, about 6 min left" in text and "\r" in text
    assert "seed 7: look here\n" in text and ": predimem 4/4" in text


def test_a_bar_lives_while_nothing_gets_done() -> None:
    stream = Terminal()
    with Bar(4, "episodes", stream=stream):
        until = time.monotonic() + 20
        while "1 s so far" not in stream.getvalue() and time.monotonic() < until:
            time.sleep(0.1)
    assert "0/4 episodes, 1 s so far" in stream.getvalue()


def test_items_are_counted_as_they_are_taken() -> None:
    stream = io.StringIO()
    assert list(watched("abc", 3, "letters", stream=stream)) == ["a", "b", "c"]
    assert stream.getvalue() == "3 of 3 letters, in 0 s\n"


def test_a_stage_is_said_and_reminds_of_itself() -> None:
    stream = io.StringIO()
    with stage("starting SAPIEN", stream, every_s=0.05):
        until = time.monotonic() + 20
        while stream.getvalue().count("\n") < 3 and time.monotonic() < until:
            time.sleep(0.01)
    lines = stream.getvalue().splitlines()
    assert lines[0] == "starting SAPIEN" and lines[1] == "starting SAPIEN: 0 s so far"
    count = len(lines)
    time.sleep(0.2)
    assert len(stream.getvalue().splitlines()) <= count + 1  # it has ended


def test_progress_is_on_standard_error_and_needs_no_tqdm_in_a_file() -> None:
    code = (
        "import sys; from predimem.core.progress import Bar, stage\n"
        "with stage('starting'): print('result')\n"
        "with Bar(2, 'episodes') as bar: bar.add(2)\n"
        "assert 'tqdm' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "result\n" and done.stderr == "starting\n2 of 2 episodes, in 0 s\n"


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(0.4, "0 s"), (99, "99 s"), (100, "2 min"), (5900, "98 min"), (6000, "1 h 40 min"), (90_000, "25 h 0 min")],
)
def test_durations(seconds: float, said: str) -> None:
    assert duration(seconds) == said


def test_a_line_beside_no_bar(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress._Shown, "stream", None)  # a server in this process shows its stages elsewhere
    say("left out: reactive")
    assert capsys.readouterr().err == "left out: reactive\n"

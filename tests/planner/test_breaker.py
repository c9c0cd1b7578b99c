"""The circuit breaker, on a clock of its own."""

from __future__ import annotations

from planner.breaker import CircuitBreaker


class Clock:
    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def test_it_opens_tries_again_and_closes() -> None:
    clock = Clock()
    breaker = CircuitBreaker(2, 1.0, clock)
    breaker.failed("down")
    assert breaker.admit() == ""
    breaker.failed("down")
    assert "2 requests failed in a row" in breaker.admit() and "(down)" in breaker.admit()
    clock.now_s = 1.0
    assert breaker.admit() == ""  # one tries,
    assert breaker.admit() != ""  # the others wait for it
    breaker.failed("down")
    clock.now_s = 2.9
    assert "in 0.1 s" in breaker.admit()  # the pause is twice as long
    clock.now_s = 3.0
    assert breaker.admit() == ""
    breaker.succeeded()
    assert breaker.admit() == "" == breaker.admit()
    breaker.failed("down")
    assert breaker.admit() == ""


def test_the_pause_has_an_end() -> None:
    clock = Clock()
    breaker = CircuitBreaker(1, 1.0, clock)
    for _ in range(20):
        clock.now_s += 1000
        assert breaker.admit() == ""
        breaker.failed("down")
    clock.now_s += 60.0
    assert breaker.admit() == ""


def test_requests_that_were_under_way_when_it_opened_do_not_lengthen_the_pause() -> None:
    clock = Clock()
    breaker = CircuitBreaker(2, 1.0, clock)
    assert [breaker.admit() for _ in range(8)] == [""] * 8
    for _ in range(8):
        breaker.failed("down")
    assert "8 requests failed in a row, the next is sent in 1.0 s" in breaker.admit()
    clock.now_s = 1.0
    assert breaker.admit() == ""
    breaker.failed("down")  # the one that tried again
    breaker.failed("down")  # one that had been under way for long
    assert "in 2.0 s" in breaker.admit()

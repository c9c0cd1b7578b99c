"""Requests of many threads, one thread that answers them."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import numpy as np
import pytest

from predimem.core.types import ActionChunk, Observation
from predimem.serving.batches import Batches, Cancellation, QueueFull, Stopped, TooLate
from predimem.serving.config import BatchConfig
from predimem.serving.metrics import Metrics
from predimem.serving.policies import SessionPolicy, SharedPolicy
from predimem.serving.refusal import Refusal


class Doubler:
    """Doubles numbers once `open` is set; remembers the batches."""

    def __init__(self) -> None:
        self.open = threading.Event()
        self.open.set()
        self.batches: list[list[int]] = []

    def __call__(self, asked: list[int]) -> Sequence[int | Exception]:
        self.batches.append(asked)
        assert self.open.wait(20)
        if 13 in asked:
            raise RuntimeError("unlucky")
        return [ValueError(n) if n < 0 else 2 * n for n in asked]


@contextmanager
def batches(doubler: Doubler, limit: int = 100, size: int = 4, wait_s: float = 0.0) -> Iterator[Batches[int, int]]:
    made: Batches[int, int] = Batches(doubler, "double", limit, BatchConfig(size, wait_s))
    try:
        yield made
    finally:
        doubler.open.set()
        made.close()


def soon(seconds: float = 20.0) -> float:
    return time.monotonic() + seconds


def wait_for(depth: int, made: Batches[int, int]) -> None:
    while made.depth != depth:
        time.sleep(0.001)


def test_what_comes_while_the_model_is_busy_is_one_batch() -> None:
    doubler = Doubler()
    doubler.open.clear()
    with batches(doubler) as made, ThreadPoolExecutor(8) as threads:
        first = threads.submit(made.call, 1, soon())
        while not doubler.batches:
            time.sleep(0.001)
        others = []
        for n in range(2, 8):
            others.append(threads.submit(made.call, n, soon()))
            wait_for(n - 1, made)
        doubler.open.set()
        assert [f.result() for f in (first, *others)] == [2, 4, 6, 8, 10, 12, 14]
    assert doubler.batches == [[1], [2, 3, 4, 5], [6, 7]]


def test_a_batch_may_wait_for_company() -> None:
    doubler = Doubler()
    with batches(doubler, size=3, wait_s=20.0) as made, ThreadPoolExecutor(3) as threads:
        assert sorted(threads.map(lambda n: made.call(n, soon(60)), (1, 2, 3))) == [2, 4, 6]
    assert len(doubler.batches) == 1


def test_errors_reach_those_who_asked() -> None:
    doubler = Doubler()
    with batches(doubler, size=1) as made:
        with pytest.raises(RuntimeError, match="unlucky"):
            made.call(13, soon())
        with pytest.raises(ValueError, match="-1"):
            made.call(-1, soon())
        assert made.call(4, soon()) == 8


def test_deadlines_a_full_queue_and_calling_off() -> None:
    doubler = Doubler()
    doubler.open.clear()
    with batches(doubler, limit=2, size=1) as made, ThreadPoolExecutor(4) as threads:
        running = threads.submit(made.call, 1, soon())
        while not doubler.batches:
            time.sleep(0.001)
        with pytest.raises(TooLate):
            made.call(2, soon(0.01))
        assert made.depth == 0  # nobody waits for it any more
        cancellation = Cancellation()
        waiting = [threads.submit(made.call, 3, soon()), threads.submit(made.call, 4, soon(), cancellation)]
        wait_for(2, made)
        with pytest.raises(QueueFull):
            made.call(5, soon())
        cancellation.cancel()
        with pytest.raises(Stopped):
            waiting[1].result()
        with pytest.raises(Stopped):
            made.call(6, soon(), cancellation)  # called off before it began
        cancellation.clear()
        assert made.busy_s > 0
        doubler.open.set()
        assert (running.result(), waiting[0].result()) == (2, 6)
        assert made.call(7, soon(), cancellation) == 14
    with pytest.raises(Stopped):
        made.call(8, soon())
    assert doubler.batches == [[1], [3], [7]]


class Fragile:
    """A policy whose batches fail where one subtask is "break"."""

    def infer(self, observation: Observation, subtask: str) -> ActionChunk:
        return self.infer_batch([observation], [subtask])[0]

    def infer_batch(self, observations: Sequence[Observation], subtasks: Sequence[str]) -> list[ActionChunk]:
        time.sleep(0.05)
        if "break" in subtasks:
            raise ValueError("cannot break")
        return [
            ActionChunk(o.step, np.zeros((2, 2), np.float32), s) for o, s in zip(observations, subtasks, strict=True)
        ]


def test_one_that_fails_does_not_spoil_its_batch() -> None:
    shared = SharedPolicy(Fragile(), 10, BatchConfig(3, wait_s=0.5), Metrics())
    observation = Observation(5, {}, np.zeros(1, np.float32))
    with ThreadPoolExecutor(3) as threads:
        calls = [threads.submit(shared.infer, observation, subtask, soon()) for subtask in ("go", "break", "stop")]
        assert [calls[k].result().subtask for k in (0, 2)] == ["go", "stop"]
        with pytest.raises(ValueError, match="cannot break"):
            calls[1].result()
    shared.close()


class Continuing(Fragile):
    """Notes what it is to continue; the subtask "overflow" gives actions that are no numbers."""

    def __init__(self) -> None:
        self.continued: list[tuple[int, float, int, str]] = []

    def infer_batch(self, observations: Sequence[Observation], subtasks: Sequence[str]) -> list[ActionChunk]:
        if "overflow" in subtasks:
            raise FloatingPointError("the actor's actions are not finite: /a/path")
        return super().infer_batch(observations, subtasks)

    def continue_chunk(
        self, observation: Observation, subtask: str, queued: np.ndarray, delay_steps: int, method: str
    ) -> ActionChunk:
        self.continued.append((observation.step, float(queued[0, 0]), delay_steps, method))
        return self.infer(observation, subtask)


def test_a_session_continues_its_own_chunk() -> None:
    policy = Continuing()
    shared = SharedPolicy(policy, 10, BatchConfig(4, wait_s=0.2), Metrics())
    sessions = [SessionPolicy(shared) for _ in range(3)]
    observations = [Observation(k, {}, np.zeros(1, np.float32)) for k in range(3)]
    for session in sessions:
        session.deadline_s = soon()
    with ThreadPoolExecutor(3) as threads:
        queued = [np.full((2, 2), k, np.float32) for k in (1, 2)]
        calls = [
            threads.submit(sessions[k].continue_chunk, observations[k], "go", queued[k], 2, "guided") for k in (0, 1)
        ]
        calls.append(threads.submit(sessions[2].infer, observations[2], "go"))
        assert [call.result().start_step for call in calls] == [0, 1, 2]
    assert sorted(policy.continued) == [(0, 1.0, 2, "guided"), (1, 2.0, 2, "guided")]
    shared.close()


def test_actions_that_are_no_numbers_are_refused() -> None:
    shared = SharedPolicy(Continuing(), 10, BatchConfig(4, wait_s=0.0), Metrics())
    observation = Observation(5, {}, np.zeros(1, np.float32))
    with pytest.raises(Refusal, match="internal: the actor's actions are not finite") as refusal:
        shared.infer(observation, "overflow", soon())
    assert "/a/path" not in str(refusal.value)
    assert shared.infer(observation, "go", soon()).start_step == 5  # the next robot is answered
    shared.close()


def test_what_is_foreseen_is_worked_on_while_nobody_waits() -> None:
    done: list[object] = []
    made: Batches[int, int] = Batches(Doubler(), "double", 9, BatchConfig(4, 0.0), done.append, lambda now: None)
    made.foresee("a", 1)
    while done != [1]:
        time.sleep(0.001)
    assert made.call(3, soon()) == 6
    made.close()


def test_a_question_ends_what_is_done_meanwhile() -> None:
    leave_off, began = threading.Event(), threading.Event()

    def meanwhile(_: int) -> None:
        began.set()
        assert leave_off.wait(20)

    def told(now: bool) -> None:
        (leave_off.set if now else leave_off.clear)()

    made: Batches[int, int] = Batches(Doubler(), "double", 9, BatchConfig(4, 0.0), meanwhile, told)
    made.foresee("a", 1)
    assert began.wait(20)
    assert made.call(3, soon()) == 6
    made.close()


def test_only_the_last_thing_that_somebody_foresaw_counts() -> None:
    doubler, done = Doubler(), []
    doubler.open.clear()
    made: Batches[int, int] = Batches(doubler, "double", 9, BatchConfig(4, 0.0), done.append, lambda now: None)
    with ThreadPoolExecutor(1) as threads:
        asked = threads.submit(made.call, 1, soon())
        while not doubler.batches:
            time.sleep(0.001)
        for who, what in (("a", 1), ("b", 5), ("a", 2), ("b", None)):
            made.foresee(who, what)
        doubler.open.set()
        assert asked.result() == 2
    while not done:
        time.sleep(0.001)
    assert made.call(3, soon()) == 6
    assert done == [2]
    made.close()


def test_a_fault_in_what_is_done_meanwhile_harms_no_question() -> None:
    def meanwhile(_: int) -> None:
        raise RuntimeError("no")

    made: Batches[int, int] = Batches(Doubler(), "double", 9, BatchConfig(4, 0.0), meanwhile, lambda now: None)
    made.foresee("a", 1)
    assert made.call(3, soon()) == 6
    made.close()

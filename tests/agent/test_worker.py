import threading
import time
from dataclasses import replace

import numpy as np
import pytest

from predimem.agent.clock import RealClock, SimulatedClock
from predimem.agent.worker import PlannerFailure, PlannerWorker
from predimem.core.types import Frame, MemorySnapshot
from tests.agent.fakes import BlockingPlanner, EagerPlanner, EndingPlanner, RaisingPlanner, StepPlanner


def snapshot(step: int, episode: str = "e") -> MemorySnapshot:
    frame = Frame(step, step / 20, {"cam": np.zeros((2, 2, 3), np.uint8)})
    return MemorySnapshot(episode, step, "count", (frame,))


def wait_for(condition, seconds: float = 5.0) -> None:
    limit = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < limit, "timed out"
        time.sleep(0.001)


def test_simulated_time_releases_a_plan_exactly_at_its_step():
    worker = PlannerWorker(StepPlanner(), SimulatedClock(s2_latency_steps=3))
    worker.submit(snapshot(0))
    assert [worker.latest(step) for step in (1, 2)] == [None, None]
    answer = worker.latest(3)
    assert answer is not None and answer.plan.step == 0 and answer.latency_s >= 0
    assert worker.latest(4) is None  # each answer once
    worker.close()


def test_simulated_time_waits_for_a_slow_machine():
    planner = BlockingPlanner()
    worker = PlannerWorker(planner, SimulatedClock(s2_latency_steps=1))
    worker.submit(snapshot(0))
    planner.started.wait(5)
    planner.release.set()
    assert worker.latest(1).plan.step == 0
    worker.close()


def test_the_latest_snapshot_wins_and_submit_never_blocks():
    planner = BlockingPlanner()
    worker = PlannerWorker(planner, RealClock(20.0))
    worker.submit(snapshot(0))
    assert planner.started.wait(5)
    began = time.perf_counter()
    for step in range(1, 50):
        worker.submit(snapshot(step))
        assert worker.latest(step) is None
    assert time.perf_counter() - began < 1.0
    planner.release.set()
    wait_for(lambda: len(planner.seen) == 2)
    assert planner.seen == [0, 49]
    worker.close()


def test_reset_throws_away_the_answer_of_the_old_episode():
    planner = StepPlanner()
    worker = PlannerWorker(planner, RealClock(20.0))
    worker.submit(snapshot(0, "old"))
    wait_for(lambda: planner.seen)
    worker.reset()
    assert worker.latest(0) is None
    worker.close()


@pytest.mark.parametrize("clock", [SimulatedClock(s2_latency_steps=1), RealClock(20.0)])
def test_reset_waits_for_the_answer_that_is_being_computed(clock):
    planner = BlockingPlanner()
    worker = PlannerWorker(planner, clock)
    worker.submit(snapshot(0))
    assert planner.started.wait(5)
    reset = threading.Thread(target=worker.reset)
    reset.start()
    reset.join(0.05)
    assert reset.is_alive()
    planner.release.set()
    reset.join(5)
    assert worker.latest(100) is None
    worker.submit(snapshot(3))  # S2 is free again
    wait_for(lambda: planner.seen == [0, 3])
    worker.close()


def test_reset_forgets_what_was_not_begun_with():
    planner = BlockingPlanner()
    worker = PlannerWorker(planner, RealClock(20.0))
    worker.submit(snapshot(0))
    assert planner.started.wait(5)
    worker.submit(snapshot(1))
    threading.Timer(0.05, planner.release.set).start()
    worker.reset()
    worker.submit(snapshot(7))
    wait_for(lambda: planner.seen == [0, 7])
    worker.close()


def test_a_late_tick_is_not_caught_up_with():
    clock = RealClock(control_hz=10.0)
    clock.begin_tick(0)
    time.sleep(0.35)  # the ticks 1 to 3 are due
    began = time.perf_counter()
    clock.begin_tick(1)
    clock.begin_tick(2)
    assert time.perf_counter() - began >= 0.1


def test_an_episode_begins_at_once():
    clock = RealClock(control_hz=0.05)  # the next tick of the one before would be due in 20 s
    began = time.perf_counter()
    clock.begin_tick(0)
    clock.begin_tick(0)
    assert time.perf_counter() - began < 10


@pytest.mark.parametrize("clock", [SimulatedClock(s2_latency_steps=1), RealClock(20.0)])
@pytest.mark.parametrize(("planner", "why"), [(RaisingPlanner(), "out of memory"), (EndingPlanner(), "no licence")])
def test_a_planner_that_raises_is_reported_not_swallowed(planner, why, clock):
    worker = PlannerWorker(planner, clock)
    worker.submit(snapshot(0))
    with pytest.raises(PlannerFailure, match=why):
        wait_for(lambda: worker.latest(1) is not None)
    worker.close()


def test_a_planner_works_ahead_between_questions_and_leaves_off_for_one():
    planner = EagerPlanner()
    worker = PlannerWorker(planner, RealClock(20.0))
    worker.foresee(snapshot(1))
    assert planner.began.wait(5)  # it would go on for ever
    worker.submit(snapshot(1))
    wait_for(lambda: worker.latest(1) is not None)
    assert planner.done == ["prepares 1", "leaves off", "plans 1"]
    worker.close()


def test_what_is_foreseen_twice_is_prepared_once():
    planner = EagerPlanner(eager=False)
    worker = PlannerWorker(planner, RealClock(20.0))
    upcoming = snapshot(1)
    for step in range(3):
        worker.foresee(replace(upcoming, step=step))
        wait_for(lambda: planner.done == ["prepares 0"])
    worker.foresee(snapshot(7))  # another frame
    wait_for(lambda: planner.done == ["prepares 0", "prepares 7"])
    worker.close()


def test_a_question_comes_before_what_is_foreseen():
    planner = EagerPlanner(eager=False)
    blocking = BlockingPlanner()
    planner.plan = blocking.plan
    worker = PlannerWorker(planner, RealClock(20.0))
    worker.submit(snapshot(0))
    assert blocking.started.wait(5)
    worker.foresee(snapshot(2))
    worker.submit(snapshot(1))
    blocking.release.set()
    wait_for(lambda: planner.done == ["prepares 2"])
    assert blocking.seen == [0, 1]
    worker.close()


def test_a_planner_forgets_the_episode_before_when_a_new_one_begins():
    planner = EagerPlanner()
    worker = PlannerWorker(planner, RealClock(20.0))
    worker.submit(snapshot(0, "old"))
    worker.foresee(snapshot(1, "old"))
    assert planner.began.wait(5)
    worker.reset()
    assert planner.done == ["plans 0", "prepares 1", "leaves off", "forgets old"]
    worker.close()


def test_simulated_time_has_no_use_for_working_ahead():
    for clock, use in ((RealClock(20.0), True), (SimulatedClock(), False)):
        worker = PlannerWorker(EagerPlanner(), clock)
        assert worker.works_ahead == use
        worker.close()
    worker = PlannerWorker(StepPlanner(), RealClock(20.0))
    assert not worker.works_ahead
    worker.close()


def test_a_planner_that_raises_while_it_works_ahead_is_reported():
    planner = EagerPlanner()
    planner.prepare = RaisingPlanner().plan
    worker = PlannerWorker(planner, RealClock(20.0))
    worker.foresee(snapshot(1))
    with pytest.raises(PlannerFailure):
        wait_for(lambda: worker.latest(1) is not None)
    worker.close()

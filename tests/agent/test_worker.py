import time

import numpy as np
import pytest

from predimem.agent.clock import RealClock, SimulatedClock
from predimem.agent.worker import PlannerFailure, PlannerWorker
from predimem.core.types import Frame, MemorySnapshot
from tests.agent.fakes import BlockingPlanner, RaisingPlanner, StepPlanner


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
def test_a_planner_that_raises_is_reported_not_swallowed(clock):
    worker = PlannerWorker(RaisingPlanner(), clock)
    worker.submit(snapshot(0))
    with pytest.raises(PlannerFailure, match="out of memory"):
        wait_for(lambda: worker.latest(1) is not None)
    worker.close()

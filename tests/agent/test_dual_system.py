"""The dual system in simulated and in real time, with every expected number worked out by hand."""

import time

import numpy as np
import pytest

from memory_bank import MemoryBank, MemoryConfig
from predimem.agent.clock import RealClock, SimulatedClock
from predimem.agent.dual_system import DualSystemAgent, DualSystemConfig
from predimem.agent.recording import TraceRecorder
from predimem.agent.runtime import run_episode
from predimem.agent.worker import PlannerWorker
from predimem.core.types import Observation, Plan
from tests.agent.fakes import (
    Answered,
    BlockingPlanner,
    CountingEnvironment,
    RaisingPlanner,
    ScriptedPlanner,
    StepPlanner,
    StepPolicy,
)


def play(environment, planner, policy, clock, execute_steps=4, memory=None, plan_every_steps=1, **switching):
    worker = PlannerWorker(planner, clock)
    bank = MemoryBank(memory or MemoryConfig(recent_window=2, cluster_gap_steps=0))
    config = DualSystemConfig(execute_steps, plan_every_steps, **switching)
    agent = DualSystemAgent(bank, worker, policy, clock, environment.hold_action, config)
    recorder = TraceRecorder()
    result = run_episode(environment, agent, "count", "test", seed=0, subscribers=[recorder])
    agent.close()
    return result, recorder.trace, agent


def test_simulated_latencies_are_charged_in_control_steps():
    environment, policy = CountingEnvironment(horizon=8), StepPolicy()
    clock = SimulatedClock(s1_latency_steps=1, s2_latency_steps=2)
    result, trace, agent = play(environment, StepPlanner(every=100), policy, clock)
    ticks = trace["ticks"]
    assert result.status == "failure" and result.steps == 8 and result.metrics == {"touched": 1.0}
    # plans asked at 0, 2, 4, 6 arrive at 2, 4, 6; the first chunk is asked at 2 and there at 3
    assert [t["plan_age_steps"] for t in ticks] == [None, None, 2, 3, 2, 3, 2, 3]
    assert [t["held_action"] for t in ticks] == [True, True, True, False, False, False, False, False]
    assert policy.calls == [(2, "phase 0"), (6, "phase 0")]
    assert [a[0] for a in environment.actions] == [-1, -1, -1, 3, 4, 5, 6, 7]
    assert agent.bank.keyframe_steps == (0, 2, 4)  # the step that each plan saw, not when it arrived


def test_a_new_subtask_forces_a_new_chunk_and_the_bridge_is_marked_stale():
    environment, policy = CountingEnvironment(horizon=9), StepPolicy()
    clock = SimulatedClock(s1_latency_steps=1, s2_latency_steps=2)
    _, trace, _ = play(environment, StepPlanner(every=4), policy, clock, execute_steps=8)
    assert policy.calls == [(2, "phase 0"), (6, "phase 1")]
    assert [t["stale_action"] for t in trace["ticks"]] == [i == 6 for i in range(9)]
    assert [a[1] for a in environment.actions[3:]] == [0, 0, 0, 0, 1, 1]


def test_s2_is_asked_at_its_own_rate_and_sees_every_frame():
    planner, clock = StepPlanner(every=100), SimulatedClock(s1_latency_steps=0, s2_latency_steps=5)
    _, trace, _ = play(CountingEnvironment(horizon=14), planner, StepPolicy(), clock, plan_every_steps=4)
    # asked at 0 (there at 5, when 4 has passed) and at 8 (there at 13), at 12 it is busy
    assert [snapshot.step for snapshot in planner.seen] == [0, 8]
    assert [[frame.step for frame in snapshot.recent] for snapshot in planner.seen] == [[0], [7, 8]]
    assert [i for i, t in enumerate(trace["ticks"]) if t["plan_arrived"]] == [5, 13]
    with pytest.raises(ValueError, match="plan_every_steps must be at least 1, got 0"):
        DualSystemConfig(plan_every_steps=0)


@pytest.mark.parametrize(
    ("steps", "asked"),
    [
        (range(0, 41, 4), [0, 12, 24, 36]),  # a client that sends one observation for each chunk of 4 actions
        (range(1, 42, 4), [1, 13, 25, 37]),  # none of these steps is a multiple of 10
        ([3, 4, 5, 60, 61, 69, 70, 300], [3, 60, 70, 300]),  # gaps
        (range(31), [0, 10, 20, 30]),
    ],
)
def test_s2_is_asked_whatever_steps_a_client_sends(steps, asked):
    environment, planner, clock = CountingEnvironment(), StepPlanner(every=1000), SimulatedClock(0, 1)
    worker = PlannerWorker(planner, clock)
    config = DualSystemConfig(plan_every_steps=10)
    agent = DualSystemAgent(MemoryBank(), worker, StepPolicy(), clock, environment.hold_action, config)
    for episode in ("first", "second"):
        agent.reset("count", episode)
        for step in steps:
            agent.act(Observation(step, {"cam": np.zeros((4, 4, 3), np.uint8)}, np.zeros(2, np.float32)))
        worker.latest(steps[-1] + 1)  # waits for the last answer
        assert [snapshot.step for snapshot in planner.seen if snapshot.episode_id == episode] == asked
    agent.close()


def test_zero_latency_and_repeatability():
    clock = SimulatedClock(0, 0)
    first = play(CountingEnvironment(), StepPlanner(), StepPolicy(), clock)[1]
    second = play(CountingEnvironment(), StepPlanner(), StepPolicy(), clock)[1]
    drop = {"s1_latency_s", "s2_latency_s"}
    strip = lambda trace: [{k: v for k, v in t.items() if k not in drop} for t in trace["ticks"]]  # noqa: E731
    assert strip(first) == strip(second)
    assert [t["plan_age_steps"] for t in first["ticks"]][:3] == [None, 1, 1]


def test_an_invalid_answer_keeps_the_last_subtask_and_is_recorded():
    clock = SimulatedClock(0, 1)
    planner = StepPlanner(every=2, invalid_at=4)
    _, trace, _ = play(CountingEnvironment(horizon=7), planner, StepPolicy(), clock)
    assert [t["subtask"] for t in trace["ticks"]] == ["", *["phase 0"] * 2, *["phase 1"] * 3, "phase 2"]
    assert [t["plan_error"] for t in trace["ticks"]][5] == "not valid JSON"
    assert trace["ticks"][5]["plan_age_steps"] == 2  # counted from the last plan that was followed


def follow(answers, hand_m=0.0, **switching):
    """Ticks and bank of an episode in which one plan arrives at every step from 1 on: (subtask, confidence).

    hand_m: where the hand is, at all steps or at each.
    """
    planner = ScriptedPlanner([Answered(*answer) for answer in answers])
    environment = CountingEnvironment(horizon=len(answers) + 1, hand_m=hand_m)
    memory = MemoryConfig(recent_window=2, cluster_gap_steps=0, past_subtasks=True)
    clock = SimulatedClock(0, 1)
    _, trace, agent = play(environment, planner, StepPolicy(number_of=len), clock, memory=memory, **switching)
    return trace["ticks"], agent.bank


def test_a_change_of_subtask_waits_for_confirmation():
    named = ["a", "b", "a", "b", "c", "c", "c", None, "b", None, "b", "b"]
    ticks, bank = follow([(name, 0.5) for name in named], confirm_plans=2)
    #       none yet, a: the first is taken; one b is not enough, nor two that "a", c or no answer come between
    assert "".join(tick["subtask"] or "-" for tick in ticks) == "-aaaaa" + "cccccc" + "b"
    assert [tick["plan_age_steps"] for tick in ticks] == [None, 1, 2, 1, 2, 3, 1, 1, 2, 3, 4, 5, 1]
    assert [tick["plan_text"] for tick in ticks[1:]] == [str(name) for name in named]  # what was said, followed or not
    assert all(tick["plan_arrived"] for tick in ticks[1:])
    assert [(tick["plan_subtask"], tick["plan_step"]) for tick in ticks[1:]] == [*zip(named, range(12), strict=True)]
    assert bank.keyframe_steps == tuple(range(len(named)))  # of every plan
    assert bank.snapshot().past_subtasks == ("a", "c", "b")  # what was followed
    unfiltered, _ = follow([(name, 0.5) for name in named])
    assert "".join(tick["subtask"] or "-" for tick in unfiltered) == "-ababccccbbbb"


def test_what_comes_next_is_remembered_and_s1_is_told_the_subtask_alone():
    said = ["ab", "ab", "ac", "ab", "ac", "ac", "c", "c"]
    ticks, bank = follow([("; then ".join(names), 0.5) for names in said], confirm_plans=2)
    assert "".join(tick["subtask"] or "-" for tick in ticks) == "-aaaaaaac"
    assert bank.snapshot().past_subtasks == ("a; then b", "a; then c", "c")
    assert not any(tick["stale_action"] for tick in ticks[2:8])  # another end of the plan asks for no other action


def test_a_plan_is_kept_and_gone_on_with():
    said = ["w", "abcd", "abcd", "a", "xb", "bx", "d", "abc", "b", "d", "cx", "d", "d", "a", "e", "e"]
    ticks, bank = follow([("; then ".join(names), 0.5) for names in said], confirm_plans=2, keep_plan=True)
    # "xb" and "abc" name nothing that is left; "d" tells that "a" or "b" is done, but "b" and "c" come first, whatever
    # is said to follow them; once the plan has come to its end, "a" and "e" are as good as any
    assert "".join(tick["subtask"] or "-" for tick in ticks) == "-wwaaaabbbbccddde"
    assert bank.snapshot().past_subtasks == ("w", *("; then ".join("abcd"[i:]) for i in range(4)), "e")


def test_a_kept_plan_is_gone_on_with_carefully():
    said = [("a; then b; then c", None), *((name, None) for name in "bbbbbcccccc")]
    careful = (
        ({}, "-abbbbbcccccc"),
        ({"min_subtask_steps": 4}, "-aaaabbbbcccc"),
        ({"confirm_next": 3}, "-aaabbbbbcccc"),
    )
    for options, expected in careful:
        ticks, _ = follow(said, keep_plan=True, **options)
        assert "".join(tick["subtask"] or "-" for tick in ticks) == expected
    for wrong in ({"min_subtask_steps": -1}, {"rest_m_by_subtask": {"a": 0.0}}, {"confirm_next": 0}):
        with pytest.raises(ValueError, match="must be"):
            DualSystemConfig(keep_plan=True, **wrong)
    for alone in ({"min_subtask_steps": 4}, {"rest_m_by_subtask": {"a": 0.01}}, {"confirm_next": 3}):
        with pytest.raises(ValueError, match="set keep_plan: true"):
            DualSystemConfig(**alone)


def test_a_subtask_that_ends_at_rest_is_not_done_while_the_hand_moves():
    said = [("a; then b; then c", None), *((name, None) for name in "bbbbcc")]
    hand_m = [0.0, 0.0, 0.1, 0.2, 0.204, 0.3, 0.4, 0.5, 0.6]
    config = {"keep_plan": True, "rest_m_by_subtask": {"a*": 0.005}, "hand_position": (0,)}
    ticks, _ = follow(said, hand_m, **config)
    assert "".join(tick["subtask"] or "-" for tick in ticks) == "-aaabbcc"  # b may be done while the hand moves
    ticks, _ = follow(said, hand_m, **config, confirm_next=2)
    assert "".join(tick["subtask"] or "-" for tick in ticks) == "-aaaaaaa"
    clock, rest = SimulatedClock(0, 1), {"keep_plan": True, "rest_m_by_subtask": {"a*": 0.005}}
    result, _, _ = play(CountingEnvironment(), StepPlanner(every=100), StepPolicy(), clock, **rest)
    assert result.status == "error" and "entries of a state of 2 numbers, got (0, 1, 2)" in result.message


def test_an_unsure_plan_changes_no_subtask():
    answers = [("a", 0.1), ("b", 0.4), ("b", 0.6), ("a", None), ("b", 0.9), ("b", 0.59), ("b", 0.9), ("a", 0.2)]
    ticks, _ = follow(answers, min_confidence=0.6)
    assert "".join(tick["subtask"] or "-" for tick in ticks) == "-aababbbb"
    assert [tick["plan_confidence"] for tick in ticks[1:]] == [confidence for _, confidence in answers]
    ticks, _ = follow(answers, min_confidence=0.6, confirm_plans=2)
    assert "".join(tick["subtask"] or "-" for tick in ticks) == "-aaaaaaaa"
    for wrong in ({"confirm_plans": 0}, {"min_confidence": 1.1}, {"min_confidence": -0.1}):
        with pytest.raises(ValueError, match="must be"):
            DualSystemConfig(**wrong)


def test_s1_never_waits_for_s2():
    environment, planner = CountingEnvironment(horizon=30), BlockingPlanner()
    began = time.perf_counter()
    result, trace, _ = play_with_blocked_planner(environment, planner)
    assert time.perf_counter() - began < 2.0
    assert result.steps == 30 and all(t["held_action"] for t in trace["ticks"])


def play_with_blocked_planner(environment, planner):
    clock = RealClock(control_hz=1000.0)
    worker = PlannerWorker(planner, clock)
    agent = DualSystemAgent(
        MemoryBank(MemoryConfig(recent_window=2)), worker, StepPolicy(), clock, environment.hold_action
    )
    recorder = TraceRecorder()
    result = run_episode(environment, agent, "count", "test", seed=0, subscribers=[recorder])
    assert planner.started.wait(10) and len(planner.seen) == 1  # of whichever step its thread began with
    planner.release.set()
    agent.close()
    return result, recorder.trace, agent


def test_real_time_keeps_the_control_period():
    environment = CountingEnvironment(horizon=10)
    began = time.perf_counter()
    play(environment, StepPlanner(), StepPolicy(), RealClock(control_hz=100.0))
    assert time.perf_counter() - began >= 0.09


def test_the_plan_of_an_old_episode_is_dropped():
    environment, policy = CountingEnvironment(horizon=3), StepPolicy()
    clock = SimulatedClock(0, 2)
    worker = PlannerWorker(StepPlanner(every=1), clock)
    agent = DualSystemAgent(MemoryBank(), worker, policy, clock, environment.hold_action)
    for seed in (0, 1):
        recorder = TraceRecorder()
        run_episode(environment, agent, "count", "test", seed, subscribers=[recorder])
        assert [t["subtask"] for t in recorder.trace["ticks"]] == ["", "", "phase 0"]
    agent.close()


@pytest.mark.parametrize("clock", [SimulatedClock(0, 2), RealClock(1000.0)])
def test_an_episode_that_is_played_again_under_its_name_gets_no_old_answer(clock):
    """The answer to the last observation is there when the episode begins again."""
    planner = StepPlanner(every=1)
    agent = DualSystemAgent(
        MemoryBank(), PlannerWorker(planner, clock), StepPolicy(), clock, CountingEnvironment().hold_action
    )
    observe = lambda step: Observation(step, {"cam": np.zeros((4, 4, 3), np.uint8)}, np.zeros(2, np.float32))  # noqa: E731
    for first in (40, 0):
        agent.reset("count", "the same")
        agent.act(observe(first))
        assert agent.last_tick.subtask == "" and agent.last_tick.keyframe_steps == ()
        until = time.monotonic() + 5
        while not planner.seen or planner.seen[-1].step != first:
            assert time.monotonic() < until
            time.sleep(0.001)
    agent.act(observe(2))
    while agent.last_tick.subtask == "" and time.monotonic() < until:  # in real time it may be a moment late
        agent.act(observe(3))
    assert agent.last_tick.subtask.startswith("phase 0") and agent.bank.keyframe_steps == (0,)
    agent.close()


@pytest.mark.parametrize("horizon", range(3, 9))
def test_an_episode_is_played_as_if_it_were_the_first(horizon):
    """Wherever the one before ended, with a plan or a chunk on its way."""
    environment, clock = CountingEnvironment(horizon), SimulatedClock(s1_latency_steps=3, s2_latency_steps=1)
    worker = PlannerWorker(StepPlanner(every=4), clock)
    agent = DualSystemAgent(MemoryBank(), worker, StepPolicy(), clock, environment.hold_action)
    played = []
    for _ in range(2):
        run_episode(environment, agent, "count", "test", seed=0)
        played.append(environment.actions)
    np.testing.assert_array_equal(*played)
    agent.close()


class Stranger:
    """A planner that answers for another episode."""

    def plan(self, snapshot):
        return Plan("another", snapshot.step, "phase 7", (snapshot.step,))


def test_an_answer_to_another_episode_is_not_followed():
    _, trace, agent = play(CountingEnvironment(horizon=4), Stranger(), StepPolicy(), SimulatedClock(0, 1))
    assert {(tick["subtask"], tick["plan_arrived"]) for tick in trace["ticks"]} == {("", False)}
    assert agent.bank.keyframe_steps == ()


@pytest.mark.parametrize(
    ("environment", "planner", "message"),
    [
        (CountingEnvironment(fail_at=3), StepPlanner(), "simulator exploded"),
        (CountingEnvironment(), RaisingPlanner(), "out of memory"),
    ],
)
def test_a_crash_is_an_error_never_a_failure(environment, planner, message):
    result, trace, _ = play(environment, planner, StepPolicy(), SimulatedClock(0, 1))
    assert result.status == "error" and message in result.message
    assert trace["result"]["status"] == "error"


def test_success_ends_the_episode():
    environment = CountingEnvironment(horizon=20, goal=6.0)
    result, *_ = play(environment, StepPlanner(), StepPolicy(), SimulatedClock(0, 1))
    assert (result.status, result.steps, result.stages_passed) == ("success", 7, 1)
    assert np.all(np.isfinite(environment.actions))


class ContinuingStepPolicy(StepPolicy):
    """Notes what it is to continue."""

    def __init__(self):
        super().__init__()
        self.continued = []

    def continue_chunk(self, observation, subtask, queued, delay_steps, method):
        self.continued.append((observation.step, [a[0] for a in queued], delay_steps, method))
        return self.infer(observation, subtask)


def test_a_chunk_continues_what_is_queued():
    environment, policy = CountingEnvironment(horizon=14), ContinuingStepPolicy()
    clock = SimulatedClock(s1_latency_steps=2, s2_latency_steps=0)
    play(environment, StepPlanner(every=9), policy, clock, chunks="guided")
    # the first chunk is asked at 1 and there at 3; the next one is asked when 4 steps of it have passed
    assert policy.calls == [(1, "phase 0"), (5, "phase 0"), (9, "phase 0"), (11, "phase 1")]
    assert policy.continued == [
        (5, [5, 6, 7, 8], 2, "guided"),
        (9, [9, 10, 11, 12], 2, "guided"),
        (11, [11, 12], 2, "guided"),  # of another subtask no more than what will have been executed
    ]


def test_synchronous_execution_holds_the_robot_while_s1_computes():
    environment, policy = CountingEnvironment(horizon=10), StepPolicy()
    clock = SimulatedClock(s1_latency_steps=2, s2_latency_steps=0)
    play(environment, StepPlanner(every=99), policy, clock, chunks="wait", align="actions")
    assert policy.calls == [(1, "phase 0"), (7, "phase 0")]
    # an action names the step that it was meant for; none is left out, because none was executed meanwhile
    assert [a[0] for a in environment.actions] == [-1, -1, -1, 1, 2, 3, 4, -1, -1, 7]


def test_a_policy_that_cannot_continue_is_refused():
    with pytest.raises(ValueError, match="cannot continue a chunk"):
        play(CountingEnvironment(), StepPlanner(), StepPolicy(), SimulatedClock(), chunks="trained")
    with pytest.raises(ValueError, match="s1_delay_steps"):
        DualSystemConfig(s1_delay_steps=-1)

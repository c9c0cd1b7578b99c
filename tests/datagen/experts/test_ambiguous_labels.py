"""A planner that knows what is due and does not say where, with the scripted skills and with the memoryless expert."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from datagen.experts.memoryless.policy import MemorylessPolicy
from datagen.experts.scripted.policy import ScriptedPolicy
from datagen.experts.scripted.subtask_names import due_label
from memory_bank import make_memory
from predimem.agent.baselines import EpisodicAgent, OracleSubtaskAgent, OracleSubtasks
from predimem.agent.clock import SimulatedClock
from predimem.agent.config import NO_MEMORY
from predimem.agent.dual_system import DualSystemAgent, DualSystemConfig
from predimem.agent.recording import TraceRecorder
from predimem.agent.runtime import run_episode
from predimem.agent.worker import PlannerWorker
from predimem.core.interfaces import Subscriber
from predimem.core.subtask_labels import released
from predimem.core.types import EpisodeResult, Observation
from predimem.envs.arena.suite import ArenaEnvironment
from predimem.evaluation.report.episode_log import LogRecorder
from predimem.evaluation.report.ticks import TickStatistics
from predimem.evaluation.run.review import review
from tests.datagen.experts import arena

HORIZON = 260
WORDS = "place cookies into basket"
POLICIES = (ScriptedPolicy, MemorylessPolicy)


def play(kind: Any, say: Callable[[str], str], subscribers: list[Subscriber]) -> EpisodeResult:
    """Task 1, where `say` makes what the planner says of the label that is due."""
    env = ArenaEnvironment(arena(1, 0), camera_every=None, horizon=HORIZON)
    clock, subtasks, policy = SimulatedClock(0, 4), OracleSubtasks(), kind(env.simulation)
    worker, settings = PlannerWorker(subtasks, clock), DualSystemConfig(plan_every_steps=10)
    inner = DualSystemAgent(make_memory(NO_MEMORY), worker, policy, clock, env.hold_action, settings)
    told = OracleSubtaskAgent(inner, subtasks, lambda: say(due_label(env.simulation)))
    agent = EpisodicAgent(told, policy.reset)
    try:
        return run_episode(env, agent, "1", "told", 0, subscribers)
    finally:
        agent.close()
        env.close()


@pytest.mark.parametrize("kind", POLICIES)
def test_the_true_place_is_not_taken_and_the_record_says_why(kind: Any) -> None:
    statistics, log, recorder = TickStatistics(), LogRecorder(), TraceRecorder()
    result = play(kind, released, [statistics, log, recorder])
    assert (result.status, result.stages_passed) == ("failure", 1), "it picks the cookies up, and carries them nowhere"
    refused = [tick for tick in recorder.trace["ticks"] if tick["refusal"]]
    assert statistics.numbers["refusals"] == len(refused) > 100
    assert {tick["subtask"] for tick in refused} == {WORDS} and refused[0]["refusal"] == {
        "label": WORDS,
        "meanings": ("place cookies at basket left", "place cookies at basket right"),
        "clear": (f"{WORDS}: basket left", f"{WORDS}: basket right"),
    }
    failure = review(log, result)["failure"]
    assert (failure["cause"], failure["given_label"]) == ("ambiguous label", WORDS)
    assert failure["step"] == refused[0]["step"] and failure["label"].startswith(f"{WORDS}: ")


@pytest.mark.parametrize("kind", POLICIES)
def test_the_oracle_says_the_place_and_is_never_refused(kind: Any) -> None:
    statistics = TickStatistics()
    result = play(kind, str, [statistics])
    assert statistics.numbers["refusals"] == 0 and result.stages_passed >= 2


@pytest.mark.parametrize("kind", POLICIES)
def test_the_arm_holds_still_until_the_place_is_said(kind: Any) -> None:
    env = arena(1, 0)
    policy = kind(env)

    def step(n: int, label: str) -> Any:
        chunk = policy.infer(Observation(n, {}, np.zeros(1, np.float32)), label)
        env.step(chunk.actions[0])
        return chunk

    assert all(step(n, "pick cookies").refusal is None for n in range(20))
    chunks = [step(n, WORDS) for n in range(20, 50)]
    assert all(chunk.refusal is not None and chunk.subtask == WORDS for chunk in chunks)
    np.testing.assert_array_equal([chunk.actions for chunk in chunks], [chunks[0].actions] * 30)
    assert np.abs(policy.arm.true_q - chunks[0].actions[0, :7]).max() < 0.02
    before = policy.arm.true_position.copy()
    assert all(step(n, f"{WORDS}: basket left").refusal is None for n in range(50, 70))
    assert np.linalg.norm(policy.arm.true_position - before) > 0.02
    env.close()

"""Scripted agents: what they play and what their ticks say; why an episode failed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from predimem.agent.baselines import EpisodicAgent, ExpertAgent, RandomAgent
from predimem.agent.recording import TraceRecorder
from predimem.agent.runtime import run_episode
from predimem.core.types import StepResult
from tests.agent.fakes import CountingEnvironment


class CountingExpert:
    """Counts up from 0 at each reset; a new subtask every second action."""

    def __init__(self) -> None:
        self._n = 0

    @property
    def subtask(self) -> str:
        return f"phase {(self._n - 1) // 2}"

    def reset(self) -> None:
        self._n = 0

    def action(self) -> np.ndarray:
        self._n += 1
        return np.array([self._n - 1, 0], np.float32)


class FailingEnvironment(CountingEnvironment):
    """Says from the third step on why it cannot succeed any more."""

    def step(self, action: np.ndarray) -> StepResult:
        result = super().step(action)
        lost = len(self.actions) >= 3
        return replace(result, terminated=lost, info={"failure": "the cube fell" if lost else "", "stages_passed": 1})


def test_a_solver_begins_anew_and_its_ticks_carry_the_subtask() -> None:
    agent, environment = ExpertAgent(CountingExpert()), CountingEnvironment(horizon=4)
    for seed in (0, 1):
        recorder = TraceRecorder()
        result = run_episode(environment, agent, "count", "oracle", seed, [recorder])
        assert (result.status, result.steps, result.message) == ("failure", 4, "")
        assert [action[0] for action in environment.actions] == [0, 1, 2, 3]
        assert [tick["subtask"] for tick in recorder.trace["ticks"]] == ["phase 0", "phase 0", "phase 1", "phase 1"]


def test_a_policy_with_a_state_begins_anew_with_each_episode() -> None:
    solver, environment = CountingExpert(), CountingEnvironment(horizon=3)
    order: list[str] = []

    class Inner(ExpertAgent):
        def reset(self, instruction: str, episode_id: str) -> None:
            order.append(f"agent {episode_id}")
            super().reset(instruction, episode_id)

    agent = EpisodicAgent(Inner(solver), lambda: order.append("policy"))
    for seed in (0, 1):
        run_episode(environment, agent, "count", "x", seed)
        assert [action[0] for action in environment.actions] == [0, 1, 2]
        assert agent.last_tick is not None and agent.last_tick.subtask == "phase 1"
    assert order == ["policy", "agent count/0/x", "policy", "agent count/1/x"]


def test_a_failure_says_why() -> None:
    result = run_episode(FailingEnvironment(), RandomAgent(2), "count", "random", 0)
    assert (result.status, result.steps, result.message) == ("failure", 3, "the cube fell")
    assert result.stages_passed == 1

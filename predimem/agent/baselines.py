"""Agents that know or ignore what they should not: upper and lower bounds for the success tables."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np

from predimem.core.interfaces import Agent, Expert
from predimem.core.types import History, MemorySnapshot, Observation, Plan, Tick


class InstructionPlanner:
    """The reactive baseline's stand-in for S2: the subtask is always the whole instruction."""

    def plan(self, snapshot: MemorySnapshot) -> Plan:
        return Plan(snapshot.episode_id, snapshot.step, snapshot.instruction)


class OracleSubtasks:
    """Ground-truth subtasks by step. Written by the control thread, read as a Planner by the worker."""

    def __init__(self) -> None:
        self._subtask_of_step: dict[int, str] = {}

    def record(self, step: int, subtask: str) -> None:
        self._subtask_of_step[step] = subtask

    def plan(self, snapshot: MemorySnapshot) -> Plan:
        return Plan(snapshot.episode_id, snapshot.step, self._subtask_of_step[snapshot.step])


class PlannedAgent(Agent, Protocol):
    """An agent with threads of its own, which `close` ends. `recall`, `watch`: see `DualSystemAgent`."""

    def recall(self, history: History) -> None: ...

    def watch(self, observation: Observation) -> None: ...

    def close(self) -> None: ...


class OracleSubtaskAgent:
    """A dual-system agent whose planner is told the true subtask of the step that it was asked at.

    It pays the same S2 latency as a learned planner, so that only memory and recognition differ.
    """

    def __init__(self, inner: PlannedAgent, subtasks: OracleSubtasks, true_subtask: Callable[[], str]):
        self._inner = inner
        self._subtasks = subtasks
        self._true_subtask = true_subtask

    def reset(self, instruction: str, episode_id: str) -> None:
        self._inner.reset(instruction, episode_id)

    def recall(self, history: History) -> None:
        self._inner.recall(history)

    def watch(self, observation: Observation) -> None:
        self._subtasks.record(observation.step, "")
        self._inner.watch(observation)

    def act(self, observation: Observation) -> np.ndarray:
        self._subtasks.record(observation.step, self._true_subtask())
        return self._inner.act(observation)

    @property
    def last_tick(self) -> Tick | None:
        return self._inner.last_tick

    def close(self) -> None:
        self._inner.close()


class EpisodicAgent:
    """An agent around a policy that has a state, which `reset_policy` makes anew for every episode."""

    def __init__(self, inner: PlannedAgent, reset_policy: Callable[[], None]):
        self._inner = inner
        self._reset_policy = reset_policy

    def reset(self, instruction: str, episode_id: str) -> None:
        self._reset_policy()
        self._inner.reset(instruction, episode_id)

    def recall(self, history: History) -> None:
        self._inner.recall(history)

    def watch(self, observation: Observation) -> None:
        self._inner.watch(observation)

    def act(self, observation: Observation) -> np.ndarray:
        return self._inner.act(observation)

    @property
    def last_tick(self) -> Tick | None:
        return self._inner.last_tick

    def close(self) -> None:
        self._inner.close()


class _UnplannedAgent:
    """An agent without S2: its ticks say which step it was and, where it knows one, the subtask."""

    def __init__(self) -> None:
        self._last_tick: Tick | None = None

    def reset(self, instruction: str, episode_id: str) -> None:
        self._last_tick = None

    def act(self, observation: Observation) -> np.ndarray:
        action = self._choose(observation)
        self._last_tick = Tick(observation.step, self._subtask(), None, stale_action=False, held_action=False)
        return action

    @property
    def last_tick(self) -> Tick | None:
        return self._last_tick

    def close(self) -> None:
        pass

    def _choose(self, observation: Observation) -> np.ndarray:
        raise NotImplementedError

    def _subtask(self) -> str:
        return ""


class ExpertAgent(_UnplannedAgent):
    """Plays what a scripted expert with privileged state does: the ceiling of a task and of its demonstrations."""

    def __init__(self, expert: Expert):
        super().__init__()
        self._expert = expert

    def reset(self, instruction: str, episode_id: str) -> None:
        super().reset(instruction, episode_id)
        self._expert.reset()

    def _choose(self, observation: Observation) -> np.ndarray:
        return self._expert.action()

    def _subtask(self) -> str:
        return self._expert.subtask


class RandomAgent(_UnplannedAgent):
    """Uniform actions in [-1, 1], from a generator that is seeded by the episode."""

    def __init__(self, action_dim: int):
        super().__init__()
        self._action_dim = action_dim
        self._generator = np.random.default_rng(0)

    def reset(self, instruction: str, episode_id: str) -> None:
        super().reset(instruction, episode_id)
        self._generator = np.random.default_rng(np.frombuffer(episode_id.encode(), np.uint8))

    def _choose(self, observation: Observation) -> np.ndarray:
        return self._generator.uniform(-1.0, 1.0, self._action_dim).astype(np.float32)

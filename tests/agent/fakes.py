"""Small hand-written fakes of the seams: an environment, a planner and a policy whose every answer
can be computed by hand."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from predimem.core.subtask_labels import in_turn
from predimem.core.types import ActionChunk, MemorySnapshot, Observation, Plan, StepResult


class CountingEnvironment:
    """The image shows the step number. Succeeds when action[0] reaches `goal`, if one is given.

    hand_m: the first entry of the state, at all steps or at each.
    """

    instruction = "count"
    action_dim = 2
    control_hz = 20.0

    def __init__(
        self,
        horizon: int = 10,
        goal: float | None = None,
        fail_at: int | None = None,
        hand_m: float | Sequence[float] = 0.0,
    ):
        self.horizon = horizon
        self._hand_m = np.broadcast_to(np.asarray(hand_m, np.float32), horizon + 1)
        self._goal = goal
        self._fail_at = fail_at
        self.actions: list[np.ndarray] = []

    def reset(self, seed: int) -> Observation:
        self.actions = []
        return self._observe()

    def step(self, action: np.ndarray) -> StepResult:
        if self._fail_at == len(self.actions):
            raise RuntimeError("simulator exploded")
        self.actions.append(action)
        success = self._goal is not None and action[0] >= self._goal
        truncated = len(self.actions) >= self.horizon
        return StepResult(self._observe(), success, truncated, success, {"touched": 1.0})

    def hold_action(self, last: np.ndarray | None) -> np.ndarray:
        return np.full(2, -1.0, np.float32)

    def close(self) -> None:
        pass

    def _observe(self) -> Observation:
        step = len(self.actions)
        image = np.full((4, 4, 3), step, np.uint8)
        state = np.array([self._hand_m[step], 0.0], np.float32)
        return Observation(step, {"cam": image}, state, step / self.control_hz)


class StepPlanner:
    """The subtask is "phase <step // every>"; nominates the last frame of the window."""

    def __init__(self, every: int = 3, invalid_at: int | None = None):
        self._every = every
        self._invalid_at = invalid_at
        self.seen: list[MemorySnapshot] = []

    def plan(self, snapshot: MemorySnapshot) -> Plan:
        self.seen.append(snapshot)
        if snapshot.step == self._invalid_at:
            return Plan(snapshot.episode_id, snapshot.step, None, (), "not json", "not valid JSON")
        subtask = f"phase {snapshot.step // self._every}"
        return Plan(snapshot.episode_id, snapshot.step, subtask, (snapshot.step,), subtask)


class Answered(NamedTuple):
    said: str | None
    confidence: float | None = None


class ScriptedPlanner:
    """The answer to the frame of step t is answers[t], the last one for good; nominates that frame."""

    def __init__(self, answers: list[Answered]):
        self._answers = answers

    def plan(self, snapshot: MemorySnapshot) -> Plan:
        said, confidence = self._answers[min(snapshot.step, len(self._answers) - 1)]
        subtask, *later = (None,) if said is None else in_turn(said)
        rest = {"confidence": confidence, "next_subtasks": tuple(later)}
        return Plan(snapshot.episode_id, snapshot.step, subtask, (snapshot.step,), str(said), **rest)


class BlockingPlanner:
    """Answers only when told to."""

    def __init__(self) -> None:
        self.release = threading.Event()
        self.started = threading.Event()
        self.seen: list[int] = []

    def plan(self, snapshot: MemorySnapshot) -> Plan:
        self.seen.append(snapshot.step)
        self.started.set()
        assert self.release.wait(10)
        return Plan(snapshot.episode_id, snapshot.step, "go", (snapshot.step,))


class EagerPlanner:
    """Works ahead until it is interrupted; if it is not eager, only for a moment. `done` says what it did."""

    def __init__(self, eager: bool = True) -> None:
        self._eager = eager
        self.began = threading.Event()
        self.done: list[str] = []

    def plan(self, snapshot: MemorySnapshot) -> Plan:
        self.done.append(f"plans {snapshot.step}")
        return Plan(snapshot.episode_id, snapshot.step, "go")

    def prepare(self, snapshot: MemorySnapshot, interrupted: Callable[[], bool]) -> bool:
        self.done.append(f"prepares {snapshot.step}")
        self.began.set()
        while self._eager:
            if interrupted():
                self.done.append("leaves off")
                return False
        return True

    def forget(self, episode_id: str) -> None:
        self.done.append(f"forgets {episode_id}")


class RaisingPlanner:
    def plan(self, snapshot: MemorySnapshot) -> Plan:
        raise RuntimeError("out of memory")


class EndingPlanner:
    def plan(self, snapshot: MemorySnapshot) -> Plan:
        raise SystemExit("no licence")


class StepPolicy:
    """actions[i] = (start_step + i, number of the phase)."""

    def __init__(self, horizon: int = 8, number_of: Callable[[str], float] | None = None):
        self._horizon = horizon
        self._number_of = number_of or (lambda subtask: float(subtask.split()[-1]))
        self.calls: list[tuple[int, str]] = []

    def infer(self, observation: Observation, subtask: str) -> ActionChunk:
        self.calls.append((observation.step, subtask))
        steps = observation.step + np.arange(self._horizon, dtype=np.float32)
        actions = np.stack([steps, np.full_like(steps, self._number_of(subtask))], axis=1)
        return ActionChunk(observation.step, actions, subtask)

"""What a diagnostic environment is to this folder, and how it becomes an `Environment`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

import numpy as np

from predimem.core.types import Observation, StepResult

CAMERA = "view"
CONTROL_HZ = 10.0  # these environments have no clock of their own


@dataclass(frozen=True, eq=False)
class Seen:
    """What the agent senses. vector: float32 [D], may be empty. image: uint8 [H, W, 3], None where there is none."""

    vector: np.ndarray
    image: np.ndarray | None = None


@dataclass(frozen=True, eq=False)
class Turn:
    """What one step gave. success: whether the task is done by now; only the last step's counts."""

    seen: Seen
    reward: float
    done: bool
    success: bool
    info: Mapping[str, object] = field(default_factory=dict)


class Game(Protocol):
    """One diagnostic environment.

    actions: the names of its actions; empty where actions are continuous.
    action_dim: how many numbers an action has: one score for each name, or the axes of a continuous action.
    horizon: the steps of the longest episode.
    hold: the index of the action that changes least.
    """

    instruction: str
    actions: tuple[str, ...]
    action_dim: int
    horizon: int
    hold: int

    def reset(self, seed: int) -> Seen: ...

    def step(self, action: int | np.ndarray) -> Turn:
        """action: an index into `actions`, or float32 [A] in [-1, 1] where actions are continuous."""
        ...

    def close(self) -> None: ...


@runtime_checkable
class Solved(Protocol):
    """A game that knows the right action: the teacher of learned agents, and the ceiling of results."""

    def solve(self) -> int | None:
        """The index of the right action now; None where any will do."""
        ...


class GameEnvironment:
    """A game as `predimem.core.interfaces.Environment`.

    A discrete action is chosen by the highest of its scores, float32 [A], and of equal ones by the first. So an agent
    that draws its actions evenly from [-1, 1], as `random` does, draws the discrete ones evenly, too.
    """

    control_hz = CONTROL_HZ

    def __init__(self, task: str, game: Game, family: str = ""):
        """family: what tasks that one agent is trained for have in common."""
        self.task, self.game, self.family = task, game, family or task
        self.instruction, self.horizon, self.action_dim = game.instruction, game.horizon, game.action_dim
        self._step, self._return = 0, 0.0

    def reset(self, seed: int) -> Observation:
        self._step, self._return = 0, 0.0
        return self._observation(self.game.reset(seed))

    def step(self, action: np.ndarray) -> StepResult:
        """Raises ValueError for an action of another shape than [A], and for values that are not finite."""
        action = np.asarray(action, np.float32)
        if action.shape != (self.action_dim,) or not np.isfinite(action).all():
            raise ValueError(f"{self.task}: expected {self.action_dim} finite numbers, got {action!r}")
        turn = self.game.step(int(action.argmax()) if self.game.actions else np.clip(action, -1, 1))
        self._step += 1
        self._return += turn.reward
        late = self._step >= self.horizon and not turn.done
        info = {**turn.info, "return": self._return}
        return StepResult(self._observation(turn.seen), turn.done, late, turn.success, info)

    def hold_action(self, last: np.ndarray | None) -> np.ndarray:
        return self.scores(self.game.hold) if self.game.actions else np.zeros(self.action_dim, np.float32)

    def scores(self, index: int) -> np.ndarray:
        """float32 [A]: the action vector that chooses the discrete action `index`."""
        return np.eye(self.action_dim, dtype=np.float32)[index]

    def close(self) -> None:
        self.game.close()

    def _observation(self, seen: Seen) -> Observation:
        images = {} if seen.image is None else {CAMERA: seen.image}
        return Observation(self._step, images, np.asarray(seen.vector, np.float32), self._step / self.control_hz)

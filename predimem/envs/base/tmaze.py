"""Passive T-Maze.

Ni et al., "When Do Transformers Shine in RL? Decoupling Memory from Credit Assignment", 2023 (arXiv:2307.03864),
after Bakker, "Reinforcement Learning with Long Short-Term Memory", NeurIPS 2001. A corridor of `delay` steps leads to a
junction. Which of its two arms holds the goal is shown once, in the first observation. An episode has just as many
steps as the way to the goal, so that a single step in another direction loses it.
"""

from __future__ import annotations

import numpy as np

from predimem.envs.base.game import Seen, Turn

RIGHT, UP, LEFT, DOWN = range(4)
MOVES = {RIGHT: (1, 0), UP: (0, 1), LEFT: (-1, 0), DOWN: (0, -1)}
PENALTY = -0.1


class TMaze:
    """Observation: float32 [2]. In the corridor [0, 0], at the beginning [0, goal], at the junction [1, 0], in its arms
    [1, y]; goal and y are -1 or 1. Being behind the shortest way costs 0.1 a step, and the goal gives 1."""

    instruction = "Go to the end of the corridor and into the arm that was shown at the beginning."
    actions: tuple[str, ...] = ("right", "up", "left", "down")
    action_dim, hold = 4, LEFT

    def __init__(self, delay: int):
        self.delay, self.horizon = delay, delay + 1

    def reset(self, seed: int) -> Seen:
        self._goal = int(np.random.default_rng(seed).choice([-1, 1]))
        self._x = self._y = self._steps = 0
        return self._seen()

    def step(self, action: int | np.ndarray) -> Turn:
        x, y = MOVES[int(action)]
        if self._is_free(self._x + x, self._y + y):
            self._x, self._y = self._x + x, self._y + y
        self._steps += 1
        done, success = self._steps >= self.horizon, self._y == self._goal
        reward = float(success) if done else PENALTY * (self._x < self._steps)
        return Turn(self._seen(), reward, done, done and success)

    def solve(self) -> int | None:
        if self._x < self.delay:
            return RIGHT
        return UP if self._goal > 0 else DOWN

    def close(self) -> None:
        """There is nothing to close."""

    def _is_free(self, x: int, y: int) -> bool:
        return 0 <= x <= self.delay and (y == 0 or (x == self.delay and abs(y) == 1))

    def _seen(self) -> Seen:
        first = self._goal if self._steps == 0 else 0
        at_junction = self._x == self.delay
        return Seen(np.array([at_junction, self._y if at_junction else first], np.float32))

"""Numpad.

Humplik et al., "Meta Reinforcement Learning as Task Inference", 2019 (arXiv:1905.06424), with discrete moves as
MIKASA-Base (arXiv:2502.10550, Appendix L.2) has them. On a square of tiles a hidden path of neighbours has to be
stepped on in its order. A right tile lights up. A wrong one turns all lights off, and the path begins anew. Nothing
shows the path: it has to be found by trial and remembered.
"""

from __future__ import annotations

from collections import deque

import numpy as np

from predimem.envs.base.game import Seen, Turn

UP, RIGHT, DOWN, LEFT = range(4)
MOVES = {UP: (-1, 0), RIGHT: (0, 1), DOWN: (1, 0), LEFT: (0, -1)}
ROUNDS = 3  # an agent that does not remember the path finds it again each time, which takes too long


class Numpad:
    """Observation: float32 [2 * size * size]: where the agent stands (one-hot), and which tiles are lit.

    Each tile of the path that lights up gives 1. When the path is complete all lights go off, and it can be gone again.
    An episode is a success once the path was completed `ROUNDS` times.
    """

    instruction = f"Find the hidden path of tiles, and go it {ROUNDS} times."
    actions: tuple[str, ...] = ("up", "right", "down", "left")
    action_dim, hold = 4, UP

    def __init__(self, size: int, length: int, horizon: int = 150):
        if not 2 <= length <= size * size:
            raise ValueError(f"a path on {size} x {size} tiles has 2 to {size * size} tiles, got {length}")
        self._size, self._length, self.horizon = size, length, horizon

    def reset(self, seed: int) -> Seen:
        random = np.random.default_rng(seed)
        tiles = [(row, column) for row in range(self._size) for column in range(self._size)]
        self._path = _path(random, tiles, self._length)
        self._at = tiles[random.integers(len(tiles))]
        self._lit, self._rounds, self._steps = 0, 0, 0
        self._known: list[tuple[int, int]] = []  # what somebody who watched would know of the path
        self._wrong: set[tuple[int, int]] = set()  # tiles that do not follow the known ones
        return self._seen()

    def step(self, action: int | np.ndarray) -> Turn:
        before, self._at = self._at, self._moved(self._at, int(action))
        reward = self._press() if self._at != before else 0.0
        self._steps += 1
        done = self._rounds >= ROUNDS or self._steps >= self.horizon
        return Turn(self._seen(), reward, done, self._rounds >= ROUNDS, {"rounds": self._rounds})

    def solve(self) -> int | None:
        """Explores as somebody does who remembers all, and then goes the path: it does not peep at it."""
        if self._lit < len(self._known):
            goals = {self._known[self._lit]}
        elif self._lit == 0:
            goals = {(r, c) for r in range(self._size) for c in range(self._size)} - self._wrong - {self._at}
        else:
            near = {self._moved(self._at, move) for move in MOVES}
            goals = near - self._wrong - set(self._known)
        return self._towards(goals)

    def close(self) -> None:
        """There is nothing to close."""

    def _press(self) -> float:
        if self._at == self._path[self._lit]:
            if self._lit == len(self._known):
                self._known.append(self._at)
                self._wrong = set()
            self._lit += 1
            if self._lit == self._length:
                self._lit, self._rounds = 0, self._rounds + 1
            return 1.0
        if self._lit == len(self._known):
            self._wrong.add(self._at)
        self._lit = 1 if self._at == self._path[0] else 0
        return float(self._lit)

    def _moved(self, at: tuple[int, int], action: int) -> tuple[int, int]:
        row, column = at[0] + MOVES[action][0], at[1] + MOVES[action][1]
        inside = 0 <= row < self._size and 0 <= column < self._size
        return (row, column) if inside else at

    def _towards(self, goals: set[tuple[int, int]]) -> int:
        """The first move of a shortest way to one of the goals."""
        reached, queue = {self._at}, deque((self._moved(self._at, move), move) for move in MOVES)
        while queue:
            at, first = queue.popleft()
            if at in goals:
                return first
            if at not in reached:
                reached.add(at)
                queue.extend((self._moved(at, move), first) for move in MOVES)
        return self.hold

    def _seen(self) -> Seen:
        place, lights = np.zeros((2, self._size, self._size), np.float32)
        place[self._at] = 1
        for tile in self._path[: self._lit]:
            lights[tile] = 1
        return Seen(np.concatenate([place.ravel(), lights.ravel()]))


def _path(random: np.random.Generator, tiles: list[tuple[int, int]], length: int) -> list[tuple[int, int]]:
    """A random path of neighbouring tiles that does not cross itself."""
    while True:
        path = [tiles[random.integers(len(tiles))]]
        while len(path) < length:
            row, column = path[-1]
            near = [(row + r, column + c) for r, c in MOVES.values()]
            free = [tile for tile in near if tile in tiles and tile not in path]
            if not free:
                break
            path.append(free[random.integers(len(free))])
        if len(path) == length:
            return path

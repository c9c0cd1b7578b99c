"""Passive Visual Match.

Hung et al., "Optimizing Agent Behavior over Long Time Scales by Transporting Value", 2019 (arXiv:1810.06721), in the
passive form of Ni et al. (arXiv:2307.03864). For 15 steps the agent stands in a cell with a coloured wall. Then it
walks for `delay` steps through a room in which apples grow. At last it has 15 steps to find, in a hall with three pads,
the one that has the colour of the wall. It sees 2 cells far.
"""

from __future__ import annotations

from collections import deque

import numpy as np

from predimem.envs.base.game import Seen, Turn

CUE_STEPS, CHOICE_STEPS, APPLES, SIGHT, REGROWTH_STEPS = 15, 15, 10, 2, 20
UP, RIGHT, DOWN, LEFT = range(4)
MOVES = {UP: (-1, 0), RIGHT: (0, 1), DOWN: (1, 0), LEFT: (0, -1)}
FLOOR, WALL, AGENT, APPLE = (0, 0, 0), (128, 128, 128), (255, 255, 255), (80, 200, 40)
COLOURS = np.array([(220, 40, 40), (40, 80, 220), (230, 200, 40)], np.uint8)
PADS = ((1, 2), (1, 5), (1, 8))
LOOKOUT = (3, 5)  # sees the middle pad; one step to the left of it the left pad is in sight
CELL = ("###", "# #", "###")
ROOM = ("###########", *["#         #"] * 5, "###########")
HALL = ("###########", "#         #", "#         #", "#         #", "####   ####", "###     ###", "###########")


class VisualMatch:
    """Observation: an image, uint8 [5, 5, 3], a pixel for each cell around the agent.

    An apple gives 1, the right pad 10. Stepping on any pad ends the episode.
    """

    instruction = "Remember the colour of the wall, collect apples, and then step on the pad of that colour."
    actions: tuple[str, ...] = ("up", "right", "down", "left")
    action_dim, hold = 4, UP

    def __init__(self, delay: int):
        self.delay, self.horizon = delay, CUE_STEPS + delay + CHOICE_STEPS

    def reset(self, seed: int) -> Seen:
        self._random = np.random.default_rng(seed)
        self._order = self._random.permutation(3)  # the colour of each pad
        self._target = int(self._random.integers(3))  # the number of the right pad
        self._step, self._looked_left = 0, False
        self._apples: set[tuple[int, int]] = set()
        self._eaten: deque[tuple[int, tuple[int, int]]] = deque()
        self._enter(CELL, (1, 1))
        return self._seen()

    def step(self, action: int | np.ndarray) -> Turn:
        cell = self._at[0] + MOVES[int(action)][0], self._at[1] + MOVES[int(action)][1]
        if self._walls[cell] == 0:
            self._at = cell
        reward = self._eat()
        pad = PADS.index(self._at) if self._choosing and self._at in PADS else None
        success = pad == self._target
        self._step += 1
        if self._step == CUE_STEPS:
            self._enter_room()
        if self._choosing and self._step == CUE_STEPS + self.delay:
            self._enter(HALL, (5, 5))
        if self._choosing and self._at[1] <= PADS[0][1] + SIGHT:
            self._looked_left = True
        done = pad is not None or self._step >= self.horizon
        return Turn(self._seen(), reward + 10 * success, done, success)

    def solve(self) -> int | None:
        """It goes where the pads come into sight one after the other, so that the colour is all one has to know."""
        if not self._choosing:
            return None
        row, column = self._at
        wanted = self._target == 1 or (self._target == 0 and self._looked_left)
        if row > LOOKOUT[0] or (row < LOOKOUT[0] and column not in {pad[1] for pad in PADS}):
            return UP if row > LOOKOUT[0] else DOWN
        to = PADS[self._target][1] if wanted or self._looked_left else LOOKOUT[1] - 1
        if column != to:
            return RIGHT if to > column else LEFT
        return UP

    def close(self) -> None:
        """There is nothing to close."""

    @property
    def _choosing(self) -> bool:
        return self._step >= CUE_STEPS + self.delay

    def _enter(self, plan: tuple[str, ...], at: tuple[int, int]) -> None:
        self._walls, self._at = np.array([[c == "#" for c in row] for row in plan]), at
        self._empty = np.zeros((len(plan) + 2 * SIGHT, len(plan[0]) + 2 * SIGHT, 3), np.uint8)
        inside = self._empty[SIGHT:-SIGHT, SIGHT:-SIGHT]
        inside[self._walls] = COLOURS[self._order[self._target]] if plan is CELL else WALL
        if plan is HALL:
            for pad, colour in zip(PADS, self._order, strict=True):
                inside[pad] = COLOURS[colour]

    def _enter_room(self) -> None:
        free = [(row, column) for row in range(1, 6) for column in range(1, 10)]
        places = [free[n] for n in self._random.permutation(len(free))[: APPLES + 1]]
        self._enter(ROOM, places[0])
        self._apples = set(places[1:])

    def _eat(self) -> float:
        if self._choosing or self._at not in self._apples:
            return 0.0
        self._apples.remove(self._at)
        self._eaten.append((self._step + REGROWTH_STEPS, self._at))
        return 1.0

    def _seen(self) -> Seen:
        while self._eaten and self._eaten[0][0] <= self._step:
            self._apples.add(self._eaten.popleft()[1])
        picture = self._empty.copy()
        if CUE_STEPS <= self._step < CUE_STEPS + self.delay:
            for row, column in self._apples:
                picture[row + SIGHT, column + SIGHT] = APPLE
        row, column = self._at
        picture[row + SIGHT, column + SIGHT] = AGENT
        view = picture[row : row + 2 * SIGHT + 1, column : column + 2 * SIGHT + 1]
        return Seen(np.zeros(0, np.float32), view.copy())

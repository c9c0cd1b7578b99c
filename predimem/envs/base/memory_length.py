"""MemoryLength, the memory experiment of bsuite.

Osband et al., "Behaviour Suite for Reinforcement Learning", ICLR 2020 (arXiv:1908.03568): `bits` random bits are shown
in the first observation. `delay` steps later a query names one of them, and the action of that step has to repeat it.
"""

from __future__ import annotations

import numpy as np

from predimem.envs.base.game import Seen, Turn


class MemoryLength:
    """Observation: float32 [2 + bits]: the share of the delay that is left, the number of the bit that is asked for (in
    the last observation alone, else 0), and the bits as -1 or 1 (in the first observation alone, else 0).

    The last action alone counts: 1 if it is right, else -1.
    """

    instruction = "Remember the bits that are shown first, and give the one that is asked for at the end."
    actions: tuple[str, ...] = ("0", "1")
    action_dim, hold = 2, 0

    def __init__(self, delay: int, bits: int = 1):
        self.delay, self.bits, self.horizon = delay, bits, delay + 1

    def reset(self, seed: int) -> Seen:
        random = np.random.default_rng(seed)
        self._context, self._query = random.integers(2, size=self.bits), int(random.integers(self.bits))
        self._step = 0
        return self._seen()

    def step(self, action: int | np.ndarray) -> Turn:
        asked, right = self._step == self.delay, int(action) == self._context[self._query]
        self._step += 1
        return Turn(self._seen(), float(2 * right - 1) if asked else 0.0, asked, bool(asked and right))

    def solve(self) -> int | None:
        return int(self._context[self._query]) if self._step == self.delay else None

    def close(self) -> None:
        """There is nothing to close."""

    def _seen(self) -> Seen:
        left = 1 - self._step / self.delay
        query = self._query if self._step == self.delay else 0
        bits = 2 * self._context - 1 if self._step == 0 else np.zeros(self.bits)
        return Seen(np.array([left, query, *bits], np.float32))

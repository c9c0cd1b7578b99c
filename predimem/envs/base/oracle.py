"""An agent that plays what the teacher of a task says."""

from __future__ import annotations

import numpy as np

from predimem.envs.base.game import GameEnvironment, Solved


class Oracle:
    """Implements `predimem.core.interfaces.Expert`."""

    subtask = ""

    def __init__(self, environment: GameEnvironment):
        """Raises ValueError where nobody knows the right actions."""
        if not isinstance(environment.game, Solved):
            raise ValueError(f"{environment.task} has no oracle: nothing here knows its right actions; try `random`")
        self._environment, self._game = environment, environment.game

    def reset(self) -> None:
        """It has no state of its own."""

    def action(self) -> np.ndarray:
        right = self._game.solve()
        return self._environment.hold_action(None) if right is None else self._environment.scores(right)

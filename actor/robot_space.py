"""Between a robot's own state and actions and those that the model learns: relative actions, and ALOHA's units.

Statistics are those of the model's side, so that they have to be computed after these transforms.
"""

from __future__ import annotations

import numpy as np

from actor.aloha import AlohaActions, AlohaState, FromAlohaActions
from actor.transforms import ToAbsolute, ToRelative
from actor.weights import ActorConfig


class RobotSpace:
    """What the config's `aloha_space` and `relative_to_state` ask for; without them everything stays as it is."""

    def __init__(self, config: ActorConfig) -> None:
        self._aloha = config.aloha_space
        entries = config.relative_to_state
        self._to_relative = ToRelative(entries) if entries else None
        self._to_absolute = ToAbsolute(entries) if entries else None

    def state(self, state: np.ndarray) -> np.ndarray:
        """float [..., D] of the robot to the model's."""
        return AlohaState()(state) if self._aloha else state

    def to_model(self, actions: np.ndarray, state: np.ndarray) -> np.ndarray:
        """The robot's chunks float [..., H, A] to the model's; state: the robot's float [..., D] where each begins."""
        if self._aloha:
            actions = FromAlohaActions()(actions)
        return actions if self._to_relative is None else self._to_relative(actions, self.state(state))

    def to_robot(self, actions: np.ndarray, state: np.ndarray) -> np.ndarray:
        """The inverse of `to_model`."""
        if self._to_absolute is not None:
            actions = self._to_absolute(actions, self.state(state))
        return AlohaActions()(actions) if self._aloha else actions

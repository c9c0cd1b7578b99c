"""What keeps a robot where it is, for robots that are told deltas and for those that are told positions."""

from __future__ import annotations

import numpy as np

from predimem.serving.robot import RobotConfig


class Hold:
    """The `hold_action` of one session's agent. Not thread-safe.

    A robot whose actions are absolute joint positions is held where it measured itself to be when holding began. That
    place then stays, because an arm that is told again and again to be where it has sagged to sinks.
    """

    def __init__(self, robot: RobotConfig, action_dim: int):
        measured = robot.measured
        given = len(robot.hold) == action_dim
        self._still = np.array(robot.hold if given else np.zeros(action_dim), np.float32)
        self._keeps = [k for k in robot.hold_keeps if k < action_dim and k not in measured]
        self._joints, self._entries = list(measured), list(measured.values())
        self._state: np.ndarray | None = None
        self._place: np.ndarray | None = None

    def see(self, state: np.ndarray) -> None:
        """The robot's state, float32 [D], at the step that is about to be answered."""
        self._state = state

    def release(self) -> None:
        """The robot moves, or another episode begins: it is to be held at another place the next time."""
        self._place = None

    def __call__(self, last: np.ndarray | None) -> np.ndarray:
        """float32 [A] for this step. last: the action before, float32 [A]."""
        assert self._state is not None, "see() comes before every control tick"
        if self._place is None:
            self._place = self._state[self._entries]
        action = self._still.copy()
        if last is not None:
            action[self._keeps] = last[self._keeps]
        action[self._joints] = self._place
        return action

    def after(self, row: np.ndarray) -> np.ndarray:
        """float32 [A]: what holds the robot once it has carried out `row`, float32 [A]."""
        action = self._still.copy()
        keeps = self._keeps + self._joints
        action[keeps] = row[keeps]
        return action

"""Homing: a hand that does not get on with its subtask goes back to where it was first, and S1 starts anew.

A learned low-level policy that has missed, such as one whose fingers closed beside a cube, is where hardly any
demonstration was, and often stays there. Where episodes begin it knows what to do.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Literal

import numpy as np
from scipy.spatial.transform import Rotation

OPEN_STEPS = 2  # control steps in which the fingers open, before the hand moves
RISE_STEPS = 2  # in which the hand rises, before it goes back
BACK_STEPS = 20  # that the way back takes at most
NEAR_M, NEAR_RAD = 0.03, 0.1  # from the place it goes back to, where it has arrived
ACTION_DIM = 7
ROTATION_AT = 3  # the first entry of the state's rotation
ROTATION_DIM = {"rpy": 3, "columns": 6}


@dataclass(frozen=True)
class HomingConfig:
    """When the hand goes home, and what the robot's actions and states mean.

    Actions have 7 entries: by how far the hand is to move along and turn about each of three axes, and the gripper.
    States begin with the hand's position in metres and its rotation, both in the frame of these axes.

    after_steps: it goes home after so many control steps of a subtask, or since it was home last, by patterns of the
    subtask's label (`*` and `?` as in a shell), of which the first one that matches counts. In others it never does.
    still_steps: earlier if the hand has not been farther than `still_m` metres from where it is for so many control
    steps; null: never earlier.
    opens: with these subtasks, patterns as well, the fingers open before the hand goes back. With others the gripper
    stays as it is.
    open: the gripper's action that opens it.
    rotation: how the state gives the hand's rotation: as roll, pitch and yaw, or as the first two `columns` of its
    matrix.
    action_m, action_rad: how far an action of 1 moves and turns the hand, in metres and rad; negative where it turns it
    the other way.
    """

    after_steps: dict[str, int] = field(default_factory=dict, hash=False)
    still_steps: int | None = None
    still_m: float = 0.01
    opens: tuple[str, ...] = ()
    open: float = 1.0
    rotation: Literal["rpy", "columns"] = "rpy"
    action_m: float = 0.1
    action_rad: float = 0.1

    def __post_init__(self) -> None:
        steps = {f"after_steps: {pattern}": number for pattern, number in self.after_steps.items()}
        for name, number in (steps | {"still_steps": self.still_steps}).items():
            if number is not None and number < 1:
                raise ValueError(f"homing: {name} must be at least 1, got {number}")
        for name in ("still_m", "action_m"):
            if not getattr(self, name) > 0:
                raise ValueError(f"homing: {name} must be more than 0, got {getattr(self, name)}")
        if self.action_rad == 0:
            raise ValueError("homing: action_rad must not be 0")

    def check(self, state_dim: int, action_dim: int) -> None:
        """Raises ValueError for a robot whose states or actions are not such."""
        needed = ROTATION_AT + ROTATION_DIM[self.rotation]
        if state_dim < needed:
            raise ValueError(
                f"agent: homing: expected states that begin with a position and a rotation as {self.rotation}, "
                f"{needed} numbers, got {state_dim}"
            )
        if action_dim != ACTION_DIM:
            raise ValueError(
                f"agent: homing: expected actions that move and turn the hand, {ACTION_DIM} entries, got {action_dim}"
            )


class Homing:
    """Those of one episode. The hand goes back to where it was when `action` was called first."""

    def __init__(self, config: HomingConfig):
        self._config = config
        self._first: tuple[np.ndarray, Rotation] | None = None
        self._subtask: str | None = None
        self._since = 0  # the step at which the subtask began, or at which the hand was home last
        self._back_since: int | None = None  # the step at which the hand began to go back, if it does
        self._seen: deque[tuple[int, np.ndarray]] = deque()  # (step, position), oldest first

    def action(
        self,
        step: int,
        state: np.ndarray,
        last_action: np.ndarray | None,
        subtask: str | None,
    ) -> np.ndarray | None:
        """float32 [7]: what the robot does instead of what S1 says; None while S1 has its way. To be called at every
        control step, with the robot's state, its action of the step before, and the subtask that it works on.

        Raises ValueError for states or actions that are not as `HomingConfig` says.
        """
        position, rotation = self._pose(state)
        if self._first is None:
            self._first = position, rotation
        if subtask != self._subtask:
            self._subtask = subtask
            self._begin(step)
        if subtask is None or last_action is None or (after := _first_match(self._config.after_steps, subtask)) is None:
            return None
        self._config.check(len(state), len(last_action))
        if self._back_since is None and (step - self._since >= after or self._is_still(step, position)):
            self._back_since = step
        if self._back_since is None:
            return None
        opens = any(fnmatchcase(subtask, pattern) for pattern in self._config.opens)
        gripper = self._config.open if opens else float(last_action[-1])
        motion = self._motion(step - self._back_since, position, rotation, opens)
        if motion is None:
            self._begin(step)
            return None
        return np.array([*motion, gripper], np.float32)

    def _begin(self, step: int) -> None:
        self._since, self._back_since = step, None
        self._seen.clear()

    def _motion(self, step: int, position: np.ndarray, rotation: Rotation, opens: bool) -> np.ndarray | None:
        """float64 [6], of the so-manieth step of the way back; None where it is over."""
        assert self._first is not None
        rises_at = OPEN_STEPS if opens else 0
        if step < rises_at:
            return np.zeros(6)
        if step < rises_at + RISE_STEPS:
            return np.array([0.0, 0.0, 1.0, 0.0, 0.0, 0.0])
        way_m = self._first[0] - position
        turn_rad = (self._first[1] * rotation.inv()).as_rotvec()
        arrived = np.linalg.norm(way_m) < NEAR_M and np.linalg.norm(turn_rad) < NEAR_RAD
        if arrived or step >= rises_at + RISE_STEPS + BACK_STEPS:
            return None
        return np.clip(np.r_[way_m / self._config.action_m, turn_rad / self._config.action_rad], -1.0, 1.0)

    def _is_still(self, step: int, position: np.ndarray) -> bool:
        steps = self._config.still_steps
        if steps is None:
            return False
        self._seen.append((step, position))
        while len(self._seen) > 1 and self._seen[1][0] <= step - steps:
            self._seen.popleft()
        if self._seen[0][0] > step - steps:
            return False
        return max(float(np.linalg.norm(position - place)) for _, place in self._seen) <= self._config.still_m

    def _pose(self, state: np.ndarray) -> tuple[np.ndarray, Rotation]:
        told = self._config.rotation
        self._config.check(len(state), ACTION_DIM)
        numbers = np.asarray(state[ROTATION_AT : ROTATION_AT + ROTATION_DIM[told]], np.float64)
        if told == "rpy":
            return state[:3].copy(), Rotation.from_euler("xyz", numbers)
        x, y = numbers[:3], numbers[3:]
        return state[:3].copy(), Rotation.from_matrix(np.stack([x, y, np.cross(x, y)], axis=1))


def _first_match(by_pattern: Mapping[str, int], label: str) -> int | None:
    return next((value for pattern, value in by_pattern.items() if fnmatchcase(label, pattern)), None)

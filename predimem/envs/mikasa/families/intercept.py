"""Intercept*: a ball rolls past a target, and has to be struck so that it comes within 0.1 m of the target's centre.

What is seen: the red ball comes from the edge of the base camera's image (y from -0.9 m), at x between -0.35 and -0.05,
and rolls along +y; the target lies 0.2 m farther from the robot. What a learner must remember: the ball's speed, which
no single image shows. The controller does without it: it waits beside the ball's path, a little before the ball is
level with the target, and strikes when the ball is near. Two fingers 3 cm apart hold the ball like a groove, so that
the strike becomes a push, which is corrected at every step. So one subtask is enough.

In InterceptSlow many balls do not come that far in 60 steps, so it is not among the tasks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from predimem.envs.mikasa.families.family import Family, State
from predimem.envs.mikasa.families.motion import (
    METRES_PER_UNIT,
    REACHED_SHARE,
    hold,
    moved,
    shoved_m,
    towards,
)
from predimem.envs.mikasa.families.scene import pointing, position_m, robot_state

HIT = "hit the ball to the target"

TARGET_BESIDE_M = 0.2  # in x, from the ball's path to the target's centre
TARGET_RADIUS_M = 0.1
HEIGHT_M = 0.025  # of the TCP: a little above the ball's centre
BEHIND_M = 0.06  # from the ball's path to where the hand waits
BEFORE_M = 0.06  # in y, from there to the target
STRIKE_M = 0.03  # strike when the ball has still so far to go in y
THROUGH_M = 0.08  # aim so far beyond the ball
STEP_M = 0.02  # what a ball rolls in a control step
GROOVE = -0.12  # gripper command for a gap of 3 cm

HIGH_M = 0.08  # above this the hand comes down only once it is over its place
NEAR_M = 0.05
PASS_M = 0.06

CONTACT_M = 0.033  # between TCP and the ball's centre when the ball lies in the groove
STEPS_PER_S = 20.0


class Intercept(Family):
    """Its state has, beside `scene.robot_state`: ball_m, target_m: float64 [3], world frame; ball_m_s: float64 [3];
    pointing: float64 [3], where the fingers point, a unit vector."""

    name = "Intercept"
    tasks = ("InterceptMedium-VLA-v0", "InterceptFast-VLA-v0")

    def state(self, base: Any, step: int) -> dict[str, Any]:
        return robot_state(base, step) | {
            "ball_m": position_m(base.ball),
            "ball_m_s": np.asarray(base.ball.linear_velocity[0].cpu(), np.float64),
            "target_m": position_m(base.goal_region),
            "pointing": pointing(base),
        }

    def subtask(self, state: State) -> str:
        return HIT

    def subtasks(self, task: str) -> Sequence[str]:
        return (HIT,)

    def goal(self, state: State) -> str:
        return HIT

    def act(self, state: State, subtask: str) -> np.ndarray:
        if subtask != HIT:
            return hold()
        action = towards(state["tcp_m"], self._aim_m(state), GROOVE, arrived_m=0.0)
        action[4] = np.clip(5.0 * (_tilt(state) - state["pointing"][0]), -1, 1)
        return action

    def valid(self, state: State, subtask: str) -> bool:
        return subtask == HIT

    def target_m(self, state: State, subtask: str) -> np.ndarray | None:
        return state["ball_m"] if subtask == HIT else None

    def goal_m(self, state: State, subtask: str) -> np.ndarray | None:
        """None once the ball is near: a disturbed strike would miss."""
        return self._aim_m(state) if subtask == HIT and not _due(state) else None

    def things(self, state: State) -> Mapping[str, np.ndarray]:
        return {"ball": state["ball_m"], "target": state["target_m"]}

    def advance(self, state: State, action: np.ndarray) -> State:
        after = moved(state, action)
        rolled = state["ball_m"] + state["ball_m_s"] / STEPS_PER_S
        tilted = state["pointing"] + REACHED_SHARE * METRES_PER_UNIT * np.array([action[4], 0.0, 0.0])
        return {**state, **after, "ball_m": shoved_m(rolled, after["tcp_m"], CONTACT_M), "pointing": tilted}

    def _aim_m(self, state: State) -> np.ndarray:
        ball, target, tcp = state["ball_m"], state["target_m"], state["tcp_m"]
        if not _due(state):
            wait = np.array([ball[0] - BEHIND_M, _level(state), HEIGHT_M])
            if tcp[2] > HIGH_M and np.linalg.norm((wait - tcp)[:2]) > NEAR_M:
                wait[2] = PASS_M
            return wait
        way = (target - ball)[:2]
        aim = ball[:2] + [0.0, STEP_M] + THROUGH_M * way / np.linalg.norm(way)
        return np.array([*aim, HEIGHT_M])


def _level(state: State) -> float:
    """The y where the ball is awaited."""
    return float(state["target_m"][1] - BEFORE_M)


def _due(state: State) -> bool:
    """Whether the ball has come near, or has been pushed nearly as far as it has to go."""
    ball, target = state["ball_m"], state["target_m"]
    return bool(ball[1] >= _level(state) - STRIKE_M or abs(ball[0] - target[0]) <= TARGET_RADIUS_M)


def _tilt(state: State) -> float:
    """The wanted x of `pointing`. Behind the balls that pass closest to the robot, an upright hand would be out of its
    reach: there the fingers point back towards it."""
    path_x = state["target_m"][0] - TARGET_BESIDE_M
    return float(-0.45 * np.clip((-0.26 - path_x) / 0.05, 0.0, 1.0))


INTERCEPT = Intercept()

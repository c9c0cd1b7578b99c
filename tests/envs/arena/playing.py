"""Small hand-made ways to move the arm about in real environments of the arena."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np


def random_actions(env: Any, steps: int, seed: int = 0, closed: bool = False) -> np.ndarray:
    """float32 [steps, A] within the limits. closed: the gripper stays closed, the arm moves less."""
    space = env.unwrapped.single_action_space
    actions = np.random.default_rng(seed).uniform(space.low, space.high, (steps, *space.shape))
    if closed:
        actions[:, :-1] *= 0.3
        actions[:, -1] = -1.0
    return actions.astype(np.float32)


def play(env: Any, actions: Iterable[np.ndarray]) -> np.ndarray:
    """[T, D]: the whole state after each action."""
    states = []
    for action in actions:
        env.step(action)
        states.append(env.unwrapped.get_state()[0].numpy())
    return np.array(states)


def hold_still(env: Any) -> np.ndarray:
    """The action that keeps the arm where it is, with the gripper open."""
    arm = env.unwrapped
    if arm.control_mode == "pd_joint_pos":
        return np.append(arm.agent.robot.qpos[0, :7].numpy(), 1.0).astype(np.float32)
    return np.append(np.zeros(6), 1.0).astype(np.float32)


def move_to(env: Any, target_m: np.ndarray, gripper: float, steps: int) -> None:
    """With pd_ee_delta_pose, the gripper as it is turned."""
    for _ in range(steps):
        ahead = target_m - env.unwrapped.world().tcp_m[0].numpy()
        action = np.zeros(7, np.float32)
        action[:3] = np.clip(ahead / 0.1, -0.4, 0.4)
        action[6] = gripper
        env.step(action)


def grasp(env: Any, name: str) -> None:
    """Pick up a round object from above, with pd_ee_delta_pose."""
    at = env.unwrapped.world().position_m[name][0].numpy()
    for height_m, gripper, steps in ((0.12, 1.0, 25), (0.01, 1.0, 25), (0.01, -1.0, 8), (0.15, -1.0, 20)):
        move_to(env, at + np.array([0, 0, height_m]), gripper, steps)

"""The arena for agents that give actions of `pd_ee_delta_pose`, with our inverse kinematics; loaded when made."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np

from predimem.envs.arena.robot.delta_pose import Driver


class DeltaPoseEnv(gymnasium.Wrapper):
    """An arena of joint targets (`pd_joint_pos`, one world) that takes actions of `pd_ee_delta_pose`, float [7], and
    counts those that it has to clip among `clipped_actions`."""

    def __init__(self, env: gymnasium.Env):
        super().__init__(env)
        self.action_space = gymnasium.spaces.Box(-1.0, 1.0, (7,), np.float32)

    def reset(self, **kwargs: Any) -> tuple[Any, dict[str, Any]]:
        first = super().reset(**kwargs)
        self._driver, self._clipped = Driver(self.unwrapped), 0
        return first

    def step(self, action: np.ndarray) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        joints = self._driver.joints(action)
        self._clipped += bool(np.abs(action).max() > 1.0)
        observation, reward, terminated, truncated, info = super().step(joints)
        info["clipped_actions"] = info["clipped_actions"] + self._clipped
        return observation, reward, terminated, truncated, info

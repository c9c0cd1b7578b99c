"""Plays actions of `pd_ee_delta_pose` in an environment of joint targets: the same motion, at a tenth of the time.

ManiSkill solves inverse kinematics with a general optimiser, which takes longer than the physics of a step and lets
the elbow wander in long episodes; `ArmKinematics` draws it back to where it rests.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from transforms3d.euler import euler2mat

from predimem.envs.arena.robot.arm import DELTA_M, DELTA_RAD, Arm


class Driver:
    """Turns actions of `pd_ee_delta_pose` into joint targets, as inverse kinematics of one's own.

    env: an `ArenaEnv` of one world with the control mode `pd_joint_pos`, after each of whose resets a new one is
    made. arm: for reading.
    """

    def __init__(self, env: Any):
        if env.control_mode != "pd_joint_pos":
            raise ValueError(f"the driver commands joints: expected pd_joint_pos, got {env.control_mode}")
        self._env = env
        self.arm = Arm(env)

    def joints(self, action: np.ndarray) -> np.ndarray:
        """float32 [8], the action of `pd_joint_pos`. action: float [7], clipped to [-1, 1].

        Raises ValueError for another shape and for values that are not finite.
        """
        action = np.asarray(action, float)
        if action.shape != (7,) or not np.isfinite(action).all():
            raise ValueError(f"an action of pd_ee_delta_pose is 7 finite numbers, got {action.tolist()}")
        action = np.clip(action, -1.0, 1.0)
        position = self.arm.true_position + DELTA_M * action[:3]
        about_x, about_y, about_z = -DELTA_RAD * action[3:6]  # ManiSkill turns the sign, see `Arm.action`
        turn = euler2mat(about_x, about_y, about_z, "rxyz")
        q, _ = self.arm.kinematics.inverse(self.arm.true_q, position, turn @ self.arm.true_rotation)
        self.arm.gripper = 1.0 if action[6] > 0 else -1.0
        return np.r_[q, self.arm.gripper].astype(np.float32)

    def step(self, action: np.ndarray) -> None:
        """action: float [7], clipped to [-1, 1]."""
        self._env.step(self.joints(action))

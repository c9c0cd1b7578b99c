"""Forward and inverse kinematics of the arm, on the model that SAPIEN hands to pinocchio."""

from __future__ import annotations

from typing import Any

import numpy as np
from transforms3d.quaternions import quat2mat

from datagen.skills.rotations import rotation_vector

LOW_RAD = np.array([-2.8973, -1.7628, -2.8973, -3.0718, -2.8973, -0.0175, -2.8973]) + 0.02
HIGH_RAD = np.array([2.8973, 1.7628, 2.8973, -0.0698, 2.8973, 3.7525, 2.8973]) - 0.02
DAMPING = 1e-3
NULL_GAIN = 0.05  # how strongly the elbow is drawn to its rest
MAX_ITERATION_RAD = 0.2
TOLERANCE_M, TOLERANCE_RAD = 5e-4, 5e-3


class ArmKinematics:
    """A Panda arm; poses are those of the TCP in the world frame."""

    def __init__(self, robot: Any, base_m: np.ndarray, rest_rad: np.ndarray):
        """robot: ManiSkill's articulation (of one world)."""
        self._model = robot._objs[0].create_pinocchio_model()
        self._tcp = [link.name for link in robot.links].index("panda_hand_tcp")
        self._base_m = base_m
        self._rest_rad = rest_rad

    def forward(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(position [3], rotation [3, 3]) of the TCP at the joint angles q [7]."""
        self._model.compute_forward_kinematics(np.r_[q, 0.04, 0.04])
        pose = self._model.get_link_pose(self._tcp)
        return pose.p.astype(float) + self._base_m, quat2mat(pose.q.astype(float))

    def inverse(
        self, q: np.ndarray, position: np.ndarray, rotation: np.ndarray, iterations: int = 20
    ) -> tuple[np.ndarray, bool]:
        """Joint angles [7] for a TCP pose by damped least squares from q, and whether they reach it (3 mm, 0.05 rad)."""
        for i in range(iterations):
            error = self._error(q, position, rotation)
            if i and np.abs(error[:3]).max() < TOLERANCE_M and np.abs(error[3:]).max() < TOLERANCE_RAD:
                return q, True
            jacobian = self._model.compute_single_link_local_jacobian(np.r_[q, 0.04, 0.04], self._tcp)[:, :7]
            inverse = jacobian.T @ np.linalg.inv(jacobian @ jacobian.T + DAMPING * np.eye(6))
            step = inverse @ error + (np.eye(7) - inverse @ jacobian) @ (NULL_GAIN * (self._rest_rad - q))
            step *= min(1.0, MAX_ITERATION_RAD / max(np.abs(step).max(), 1e-9))
            q = np.clip(q + step, LOW_RAD, HIGH_RAD)
        error = self._error(q, position, rotation)
        return q, bool(np.linalg.norm(error[:3]) < 3e-3 and np.linalg.norm(error[3:]) < 0.05)

    def _error(self, q: np.ndarray, position: np.ndarray, rotation: np.ndarray) -> np.ndarray:
        """[6]: what is missing to the pose, in the TCP's frame: metres, then a rotation vector."""
        at, turned = self.forward(q)
        return np.r_[turned.T @ (position - at), rotation_vector(turned.T @ rotation)]

"""Forward and inverse kinematics of the arm, on the model that SAPIEN hands to pinocchio."""

from __future__ import annotations

from typing import Any

import numpy as np
from transforms3d.quaternions import quat2mat

from predimem.envs.arena.robot.rotations import rotation_vector

LOW_RAD = np.array([-2.8973, -1.7628, -2.8973, -3.0718, -2.8973, -0.0175, -2.8973]) + 0.02
HIGH_RAD = np.array([2.8973, 1.7628, 2.8973, -0.0698, 2.8973, 3.7525, 2.8973]) - 0.02
DAMPED = 1e-3 * np.eye(6)
FINGERS_M = (0.04, 0.04)  # they do not matter to the arm
NULL_GAIN = 0.05  # how strongly the elbow is drawn to its rest
MAX_ITERATION_RAD = 0.2
SOLVE_ITERATIONS = 100
TOLERANCE_M, TOLERANCE_RAD = 5e-4, 5e-3


class ArmKinematics:
    """A Panda arm; poses are those of the TCP in the world frame."""

    def __init__(self, robot: Any, base_m: np.ndarray, rest_rad: np.ndarray):
        """robot: ManiSkill's articulation (of one world)."""
        self._model = robot._objs[0].create_pinocchio_model()
        self._tcp = [link.name for link in robot.links].index("panda_hand_tcp")
        self._base_m = base_m
        self.rest_rad = rest_rad

    def forward(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(position [3], rotation [3, 3]) of the TCP at the joint angles q [7]."""
        self._model.compute_forward_kinematics(np.concatenate([q, FINGERS_M]))
        pose = self._model.get_link_pose(self._tcp)
        return pose.p.astype(float) + self._base_m, quat2mat(pose.q.astype(float))

    def inverse(
        self, q: np.ndarray, position: np.ndarray, rotation: np.ndarray, iterations: int = 20
    ) -> tuple[np.ndarray, bool]:
        """Joint angles [7] for a TCP pose, by damped least squares from q; whether they reach it (3 mm, 0.05 rad)."""
        for i in range(iterations):
            error = self._error(q, position, rotation)
            if i and np.abs(error[:3]).max() < TOLERANCE_M and np.abs(error[3:]).max() < TOLERANCE_RAD:
                return q, True
            jacobian = self._model.compute_single_link_local_jacobian(np.concatenate([q, FINGERS_M]), self._tcp)[:, :7]
            homewards = NULL_GAIN * (self.rest_rad - q)
            square = jacobian @ jacobian.T + DAMPED
            step = homewards + jacobian.T @ np.linalg.solve(square, error - jacobian @ homewards)
            step *= min(1.0, MAX_ITERATION_RAD / max(np.abs(step).max(), 1e-9))
            q = np.minimum(np.maximum(q + step, LOW_RAD), HIGH_RAD)
        error = self._error(q, position, rotation)
        return q, bool(np.linalg.norm(error[:3]) < 3e-3 and np.linalg.norm(error[3:]) < 0.05)

    def solve(self, position: np.ndarray, rotation: np.ndarray) -> tuple[np.ndarray, bool]:
        """As `inverse`, for a pose anywhere: from the rest pose, turned towards it."""
        start = self.rest_rad.copy()
        offset = np.asarray(position, float) - self._base_m
        start[0] += np.arctan2(offset[1], offset[0])
        return self.inverse(start, np.asarray(position, float), rotation, SOLVE_ITERATIONS)

    def room_rad(self, q: np.ndarray) -> float:
        """How far the joint that is nearest to one of its limits is from it."""
        return float(np.minimum(q - LOW_RAD, HIGH_RAD - q).min())

    def _error(self, q: np.ndarray, position: np.ndarray, rotation: np.ndarray) -> np.ndarray:
        """[6]: what is missing to the pose, in the TCP's frame: metres, then a rotation vector."""
        at, turned = self.forward(q)
        return np.concatenate([turned.T @ (position - at), rotation_vector(turned.T @ rotation)])

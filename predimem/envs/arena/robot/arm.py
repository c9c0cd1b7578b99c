"""The arm as skills command it: motions are generators, and every `yield` is one control step."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from transforms3d.euler import mat2euler
from transforms3d.quaternions import quat2mat

from predimem.envs.arena.fixtures import REST_QPOS_RAD, ROBOT_BASE_M
from predimem.envs.arena.robot.kinematics import ArmKinematics
from predimem.envs.arena.robot.rotations import angle_between_rad, between
from predimem.envs.arena.scene.environment import CONTROL_HZ
from predimem.envs.arena.scene.reading import tcp_pose

SPEED_M_S, TURN_RAD_S = 0.30, 1.5
JOINT_SPEED_RAD_S = 1.2
MAX_JOINT_STEP_RAD = 0.15
OPEN, CLOSED = 1.0, -1.0
DELTA_M, DELTA_RAD = 0.1, 0.1  # what an action of 1 commands in pd_ee_delta_pose
HOME_FROM_REST_M = np.array([-0.15, 0.0, 0.10])  # at rest, the gripper hides the drawers from agentview

# In pd_ee_delta_pose the arm covers about 40 % of what is commanded in a step: paths wait for it.
LAG_M, LAG_RAD = 0.05, 0.15  # a path goes on only when the arm is this near
ARRIVED_M, ARRIVED_RAD = 0.004, 0.03
LAG_STEPS = 12  # and this is how long it waits at most: in contact the arm may never get there

Motion = Iterator[None]
Path = Callable[[float], tuple[np.ndarray, np.ndarray]]


class Arm:
    """The arm of one world. A motion changes the command and yields; `action()` turns the command into an action of the
    environment's control mode (`pd_joint_pos` or `pd_ee_delta_pose`).

    position [3], rotation [3, 3]: the commanded TCP pose in the world.
    gripper: `OPEN` or `CLOSED`.
    """

    def __init__(self, env: Any):
        """env: an `ArenaEnv` of one world."""
        self._env = env
        self.reset()

    def reset(self) -> None:
        """Take the robot's true pose as the command: after every reset of the environment."""
        robot = self._env.agent.robot
        self.kinematics = ArmKinematics(robot, np.array(ROBOT_BASE_M), np.array(REST_QPOS_RAD))
        self.q = self.true_q
        self.position, self.rotation = self.kinematics.forward(self.q)
        self.rest_position, self.rest_rotation = self.kinematics.forward(np.array(REST_QPOS_RAD))
        self.home_position = self.rest_position + HOME_FROM_REST_M
        self.gripper = OPEN

    # ---- what is so

    @property
    def true_position(self) -> np.ndarray:
        return tcp_pose(self._env)[0, :3].cpu().numpy().astype(float)

    @property
    def true_rotation(self) -> np.ndarray:
        return quat2mat(tcp_pose(self._env)[0, 3:].cpu().numpy().astype(float))

    @property
    def true_q(self) -> np.ndarray:
        return self._env.agent.robot.qpos[0, :7].cpu().numpy().astype(float)

    @property
    def finger_gap_m(self) -> float:
        return float(self._env.agent.robot.qpos[0, 7:9].sum())

    def at(self, within_m: float, within_rad: float) -> bool:
        """Whether the gripper is where it is commanded to be."""
        off_m = float(np.linalg.norm(self.position - self.true_position))
        return off_m <= within_m and angle_between_rad(self.rotation, self.true_rotation) <= within_rad

    # ---- the command as an action

    @property
    def relative(self) -> bool:
        """Whether actions are relative to where the gripper is (pd_ee_delta_pose): then it lags behind."""
        return self._env.control_mode != "pd_joint_pos"

    def action(self) -> np.ndarray:
        """float32 [8] joint angles in rad and gripper, or float32 [7] in [-1, 1]."""
        if not self.relative:
            return np.r_[self.q, self.gripper].astype(np.float32)
        moved = (self.position - self.true_position) / DELTA_M
        turned = self.rotation @ self.true_rotation.T
        # ManiSkill scales the rotation by its lower bound, which is negative: the sign is turned.
        spun = -np.array(mat2euler(turned, "rxyz")) / DELTA_RAD
        return np.r_[np.clip(moved, -1, 1), np.clip(spun, -1, 1), self.gripper].astype(np.float32)

    def point(self, position: np.ndarray, rotation: np.ndarray) -> None:
        """Command one TCP pose; the joints go at most `MAX_JOINT_STEP_RAD` towards it per step."""
        self.position, self.rotation = np.asarray(position, float), rotation
        q, _ = self.kinematics.inverse(self.q, self.position, rotation)  # out of reach: as near as it gets
        step = q - self.q
        self.q = self.q + step * min(1.0, MAX_JOINT_STEP_RAD / max(np.abs(step).max(), 1e-9))

    # ---- motions

    def wait(self, steps: int) -> Motion:
        for _ in range(steps):
            yield

    def grip(self, gripper: float, steps: int = 8) -> Motion:
        self.gripper = gripper
        yield from self.wait(steps)

    def move(
        self,
        position: np.ndarray,
        rotation: np.ndarray | None = None,
        speed_m_s: float = SPEED_M_S,
        turn_rad_s: float = TURN_RAD_S,
        settle: int = 2,
    ) -> Motion:
        """A straight line from the commanded pose, starting and ending softly, then `settle` steps of waiting."""
        start, turned = self.position, self.rotation
        position = np.asarray(position, float)
        rotation = turned if rotation is None else rotation
        seconds = max(
            float(np.linalg.norm(position - start)) / speed_m_s, angle_between_rad(turned, rotation) / turn_rad_s
        )
        steps = max(1, int(np.ceil(seconds * CONTROL_HZ)))

        def line(share: float) -> tuple[np.ndarray, np.ndarray]:
            eased = share * share * (3 - 2 * share) if steps > 6 else share
            return start + (position - start) * eased, between(turned, rotation, eased)

        yield from self.follow(line, steps, settle)

    def follow(self, path: Path, steps: int, settle: int = 2) -> Motion:
        """Along path(share) -> (position, rotation) for shares up to 1, one per step."""
        for i in range(1, steps + 1):
            self.point(*path(i / steps))
            yield
            yield from self._catch_up(LAG_M, LAG_RAD)
        yield from self._settle(settle)

    def _settle(self, steps: int) -> Motion:
        yield from self.wait(steps)
        if steps:
            yield from self._catch_up(ARRIVED_M, ARRIVED_RAD)

    def _catch_up(self, within_m: float, within_rad: float) -> Motion:
        if self.relative:
            for _ in range(LAG_STEPS):
                if self.at(within_m, within_rad):
                    break
                yield

    def travel(self, position: np.ndarray, rotation: np.ndarray, settle: int = 2) -> Motion:
        """To a far pose on an arc, in joint space: a straight line could pass too close to the base.

        Only where nothing is in the way: between two poses of one height the gripper stays near that height.
        """
        q, _ = self.kinematics.solve(position, rotation)
        yield from self.joints(q, settle)

    def joints(self, q: np.ndarray, settle: int = 2) -> Motion:
        """All joints at once to q [7], starting and ending softly."""
        if self.relative:  # the arm's own inverse kinematics let the elbow drift away from the model's
            self.q = self.true_q
        start = self.q
        steps = max(1, int(np.ceil(np.abs(q - start).max() / JOINT_SPEED_RAD_S * CONTROL_HZ)))
        for i in range(1, steps + 1):
            share = i / steps
            self.q = start + (q - start) * share * share * (3 - 2 * share)
            self.position, self.rotation = self.kinematics.forward(self.q)
            yield
            yield from self._catch_up(LAG_M, LAG_RAD)
        yield from self._settle(settle)

    def rise(self, height_m: float, settle: int = 0) -> Motion:
        """Straight up to a height, never down."""
        if height_m > self.position[2] + 1e-3:
            yield from self.move(np.array([*self.position[:2], height_m]), settle=settle)

    def go_home(self, height_m: float = 0.38) -> Motion:
        """Up, over, and home, out of the way of both cameras."""
        home = self.home_position
        yield from self.rise(height_m)
        over = np.array([*home[:2], max(height_m, home[2])])
        yield from self.travel(over, self.rest_rotation, settle=0)
        yield from self.move(home, self.rest_rotation, settle=1)

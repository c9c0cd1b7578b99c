"""A learned actor as the low-level policy: planners learn how it moves, and when it has finished a subtask."""

from __future__ import annotations

from typing import Any

import numpy as np

from datagen.experts.memoryless.policy import MemorylessPolicy
from predimem.core.interfaces import Policy
from predimem.core.types import ActionChunk, Observation
from predimem.envs.arena.robot.arm import Arm
from predimem.envs.arena.robot.delta_pose import Driver
from predimem.envs.arena.subtasks import Subtask

REST_M = 0.006  # it comes to rest less exactly than the expert that it imitates


class LearnedPolicy:
    """Implements `TrackedPolicy`: carries out the actions of `policy`. The memoryless expert looks on and tells whether
    the motion has ended."""

    def __init__(self, env: Any, policy: Policy, execute_steps: int):
        """env: an `ArenaEnv` of one world with joint targets that has been reset. policy: gives actions of
        `pd_ee_delta_pose`, of which `execute_steps` are carried out before it is asked again."""
        self._policy, self._execute_steps = policy, execute_steps
        self._driver = Driver(env)
        self._expert = MemorylessPolicy(env, REST_M)
        self._actions: list[np.ndarray] = []
        self._last = np.r_[self.arm.true_q, self.arm.gripper].astype(np.float32)
        self._label = ""

    @property
    def doing(self) -> Subtask | None:
        return self._expert.doing

    @property
    def motion(self) -> int | None:
        return self._expert.motion

    @property
    def arm(self) -> Arm:
        return self._driver.arm

    def infer(self, observation: Observation, subtask: str) -> ActionChunk:
        """actions: float32 [1, 8], joint angles in rad and the gripper."""
        self._expert.infer(observation, subtask)
        if not self._actions or subtask != self._label:
            self._actions = list(self._policy.infer(observation, subtask).actions[: self._execute_steps])
        self._last, self._label = self._driver.joints(self._actions.pop(0)), subtask
        return ActionChunk(observation.step, self._last[None], subtask)

    def still(self, observation: Observation) -> ActionChunk:
        """Instead of `infer` at a control step at which the arm shall stand still. Then the policy is asked anew."""
        self._actions = []
        return ActionChunk(observation.step, self._last[None], self._label)

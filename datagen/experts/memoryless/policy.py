"""The memoryless expert as a low-level policy: what an actor would do that has learned its labels perfectly."""

from __future__ import annotations

from typing import Any

import numpy as np

from datagen.experts.memoryless.advice import Advice
from datagen.experts.memoryless.expert import advise
from datagen.experts.memoryless.hold import OPENED_GAP_M
from datagen.experts.scripted.action_labels import REACHED_SHARE
from datagen.experts.scripted.snapshot import Gripper, Snapshot
from datagen.experts.scripted.subtask_names import named
from predimem.core.types import ActionChunk, AmbiguousLabel, Observation
from predimem.envs.arena.robot.arm import OPEN, Arm
from predimem.envs.arena.robot.rotations import rotation_matrix
from predimem.envs.arena.subtasks import Skill, Subtask

REST_M, REST_RAD = 0.003, 0.03  # a control step that is smaller is none


class MemorylessPolicy:
    """Implements `Policy` with chunks of one action: `infer` is to be called once at every control step, and
    `reset` after each reset of the environment.

    It decides every step afresh, from the true state and the subtask alone. A subtask that is asked for longer is done
    again, a pour at once. At a label that the task does not have, the arm stands still; at one that could mean several
    things as well, and the chunk says so (`refusal`).
    """

    def __init__(self, env: Any, rest_m: float = REST_M):
        """env: an `ArenaEnv` of one world with joint targets, or a wrapper around one. rest_m: a motion whose
        next step is smaller, and turns less than `REST_RAD`, has come to rest."""
        self._env = env.unwrapped
        self._rest_m = rest_m
        self.reset()

    def reset(self) -> None:
        self.arm = Arm(self._env)
        self.doing: Subtask | None = None
        self._motions, self._resting, self._label = 0, True, ""
        self._known: Snapshot | None = None
        self._meant: dict[str, Subtask | AmbiguousLabel | None] = {}

    @property
    def motion(self) -> int | None:
        """The number of the motion that goes on; None when it has come to rest, and in pours, which go round."""
        return None if self._resting else self._motions

    def infer(self, observation: Observation, subtask: str) -> ActionChunk:
        """actions: float32 [1, 8], joint angles in rad and the gripper."""
        if subtask not in self._meant:
            self._meant[subtask] = named(self._env.task, self._env.variant(), subtask)
        meant = self._meant[subtask]
        if not isinstance(meant, Subtask):
            return ActionChunk(observation.step, self.arm.action()[None], subtask, refusal=meant)
        self._motions += meant != self.doing
        self.doing, self._label = meant, subtask
        self._command(meant)
        return ActionChunk(observation.step, self.arm.action()[None], subtask)

    def still(self, observation: Observation) -> ActionChunk:
        """Instead of `infer` at a control step at which the arm shall stand still."""
        return ActionChunk(observation.step, self.arm.action()[None], self._label)

    def _command(self, subtask: Subtask) -> None:
        scene, gripper = Snapshot.of(self._env), Gripper.of(self.arm)
        if self._known is not None:
            scene.adopt_grasps(self._known)
        self._known = scene
        advice = advise(self.arm, gripper, scene, subtask)
        self._resting = subtask.skill is Skill.POUR or self._rests(advice, gripper)
        self.arm.gripper, self.arm.q = advice.gripper, self.arm.true_q
        turn = rotation_matrix(advice.turn_rad / REACHED_SHARE)
        self.arm.point(gripper.position + advice.step_m / REACHED_SHARE, turn @ gripper.rotation)

    def _rests(self, advice: Advice, gripper: Gripper) -> bool:
        opens = advice.gripper == OPEN and gripper.gap_m < OPENED_GAP_M
        step_m, turn_rad = np.linalg.norm(advice.step_m), np.linalg.norm(advice.turn_rad)
        return not opens and bool(step_m < self._rest_m and turn_rad < REST_RAD)

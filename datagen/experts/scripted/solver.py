"""Scripted agents: one that knows the true state and subtask, and one that plays a fixed list of subtasks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from datagen.experts.scripted.execute import skill
from datagen.experts.scripted.true_scene import TrueScene
from predimem.envs.arena.robot.arm import Arm, Motion
from predimem.envs.arena.subtasks import Subtask

SETTLE_STEPS = 10  # after a motion, for things to come to rest and its stage to pass
RETRY_FROM_M = 0.30  # another attempt begins with the gripper this high


class _Solver:
    """Plays one motion after the other; between them and after the last, the arm keeps still."""

    def __init__(self, env: Any):
        """env: an `ArenaEnv` of one world, or a wrapper around one."""
        self._env = env.unwrapped
        self.reset()

    def reset(self) -> None:
        """Begin anew; to be called after each reset of the environment."""
        self._arm, self._scene = Arm(self._env), TrueScene(self._env)
        self._motion: Motion = iter(())
        self._subtask = ""

    @property
    def subtask(self) -> str:
        """The label of the subtask that the last action was for."""
        return self._subtask

    def action(self) -> np.ndarray:
        """float32 [A] for this control step, in the environment's control mode."""
        if not self._step():
            self._motion = self._next()
            self._step()  # a motion that cannot be begun is a step of keeping still
        return self._arm.action()

    def _step(self) -> bool:
        """Go on with the motion; False when it is over."""
        return next(self._motion, self) is not self

    def _next(self) -> Motion:
        raise NotImplementedError


class OracleSolver(_Solver):
    """Does the true subtask that is due (`DueStage`), again and again until it is done; keeps still in a pause."""

    def reset(self) -> None:
        super().reset()
        self._tried = -1  # the stage of the last attempt

    def _next(self) -> Motion:
        while self._env.waiting:
            yield
        subtasks, stage = self._env.variant().subtasks, self._env.due.stage
        again = stage == self._tried
        self._tried = stage
        if stage < len(subtasks):
            self._subtask = subtasks[stage].label
            yield from self._attempt(subtasks[stage], stage, again)

    def _attempt(self, subtask: Subtask, stage: int, again: bool) -> Motion:
        if again:
            yield from self._arm.rise(RETRY_FROM_M)
        yield from skill(self._arm, self._scene, subtask)
        for _ in range(SETTLE_STEPS):
            if self._env.due.stage != stage:
                break
            yield


class ScriptSolver(_Solver):
    """Plays each subtask once, in order, whatever happens: what a robot without eyes and memory would do."""

    def __init__(self, env: Any, subtasks: Sequence[Subtask]):
        self._script = tuple(subtasks)
        super().__init__(env)

    def reset(self) -> None:
        super().reset()
        self._left = iter(self._script)

    def _next(self) -> Motion:
        subtask = next(self._left, None)
        if subtask is not None:
            self._subtask = subtask.label
            yield from skill(self._arm, self._scene, subtask)

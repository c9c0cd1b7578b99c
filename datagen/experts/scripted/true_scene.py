"""The true state of the simulation as the `Scene` of scripted skills."""

from __future__ import annotations

from typing import Any

import numpy as np
from transforms3d.quaternions import quat2mat

from datagen.experts.scripted.known_grasp import known_grasp
from datagen.experts.scripted.scene import Extent, TcpPose
from predimem.envs.arena.objects import OBJECTS
from predimem.envs.arena.robot.arm import Arm


class TrueScene:
    """The true state of an `ArenaEnv` of one world: the `Scene` of solvers that know everything."""

    def __init__(self, env: Any):
        self._env = env

    @property
    def objects(self) -> tuple[str, ...]:
        return self._env.task.objects

    @property
    def fixtures(self) -> tuple[str, ...]:
        return self._env.task.fixtures

    def position_m(self, name: str) -> np.ndarray:
        return self._env.world().position_m[name][0].cpu().numpy().astype(float)

    def rotation(self, name: str) -> np.ndarray:
        return quat2mat(self._env.world().rotation[name][0].cpu().numpy().astype(float))

    def extent(self, object: str) -> Extent:
        spec = OBJECTS[object]
        return Extent(spec.half_m, spec.shape == "cylinder")

    def opening(self, joint: str) -> float:
        return float(self._env.world().joint[joint][0])

    def grasp(self, arm: Arm, object: str) -> TcpPose | None:
        return known_grasp(arm, self, object)

    def holds(self, predicate: Any) -> bool:
        """Whether a predicate of the benchmark is true now."""
        return bool(predicate(self._env.world())[0])

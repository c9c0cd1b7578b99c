"""What skills know of the world: positions of things, and how far drawers and doors are open."""

from __future__ import annotations

from typing import Any

import numpy as np
from transforms3d.quaternions import quat2mat

from datagen.arena.fixtures import PLACES


class Scene:
    """The true state of an `ArenaEnv` of one world, in NumPy: metres, radians, world frame."""

    def __init__(self, env: Any):
        self._env = env

    @property
    def objects(self) -> tuple[str, ...]:
        return self._env.task.objects

    @property
    def fixtures(self) -> tuple[str, ...]:
        """The task's furniture besides the kitchen's."""
        return self._env.task.fixtures

    def position_m(self, name: str) -> np.ndarray:
        """[3]: of an object, fixture, drawer, or the microwave's "door" (its hinge)."""
        return self._env.world().position_m[name][0].cpu().numpy().astype(float)

    def rotation(self, name: str) -> np.ndarray:
        """[3, 3]"""
        return quat2mat(self._env.world().rotation[name][0].cpu().numpy().astype(float))

    def opening(self, joint: str) -> float:
        """m for drawers, rad for the microwave's door."""
        return float(self._env.world().joint[joint][0])

    def holds(self, predicate: Any) -> bool:
        """Whether a predicate of the benchmark is true now."""
        return bool(predicate(self._env.world())[0])

    def place_point_m(self, place: str, offset_m: tuple[float, float]) -> np.ndarray:
        """[3]: a point on the floor of a place, `offset_m` (x, y, in the frame of its fixture) from its middle."""
        spec = PLACES[place]
        in_frame = np.add(spec.centre_m, [*offset_m, 0.0])
        return self.position_m(spec.frame) + self.rotation(spec.frame) @ in_frame

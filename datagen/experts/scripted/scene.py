"""What skills know of the world: where things are, how big, how far drawers and doors are open, how to grasp."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from predimem.envs.arena.fixtures import PLACES

if TYPE_CHECKING:
    from predimem.envs.arena.robot.arm import Arm

TcpPose = tuple[np.ndarray, np.ndarray]  # position [3] in m and rotation [3, 3] in the world


@dataclass(frozen=True)
class Extent:
    """The size of an object. half_m: half of it along the object's own axes. round: about its z axis."""

    half_m: tuple[float, float, float]
    round: bool = False


class Scene(Protocol):
    """All in metres and radians, in the world frame. Only the table's other things are asked for by name."""

    @property
    def objects(self) -> tuple[str, ...]:
        """Those whose place is known."""
        ...

    @property
    def fixtures(self) -> tuple[str, ...]:
        """The task's furniture besides the kitchen's."""
        ...

    def position_m(self, name: str) -> np.ndarray:
        """[3]: of an object (its centre), fixture, drawer, or the microwave's "door" (its hinge)."""
        ...

    def rotation(self, name: str) -> np.ndarray:
        """[3, 3]"""
        ...

    def extent(self, object: str) -> Extent: ...

    def opening(self, joint: str) -> float:
        """m for drawers, rad for the microwave's door."""
        ...

    def grasp(self, arm: Arm, object: str) -> TcpPose | None:
        """The TCP's pose to grasp an object at; None if there is no way to."""
        ...


def place_point_m(scene: Scene, place: str, offset_m: tuple[float, float]) -> np.ndarray:
    """[3]: a point on the floor of a place, `offset_m` (x, y, in the frame of its fixture) from its middle."""
    spec = PLACES[place]
    return scene.position_m(spec.frame) + scene.rotation(spec.frame) @ np.add(spec.centre_m, [*offset_m, 0.0])

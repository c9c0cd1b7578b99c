"""A copy of the scene that can be moved without physics: what labels are rolled out in."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from datagen.arena.fixtures import DRAWERS, JOINTS, KITCHEN
from datagen.skills.arm import Arm
from datagen.skills.known_grasp import known_grasp
from datagen.skills.rotations import rotation_matrix
from datagen.skills.scene import Extent, TcpPose, TrueScene

OPEN_GAP_M = 0.08
OPENING_SHARE = 0.4  # of the way that is left, the fingers open in a control step,
CLOSING_M = 0.03  # and so far they close


@dataclass
class Hand:
    """Where the gripper is (TCP, world frame) and how far apart its fingers are: all that an expert knows of it."""

    position: np.ndarray
    rotation: np.ndarray
    gap_m: float

    @classmethod
    def of(cls, arm: Arm) -> Hand:
        """The true one."""
        return cls(arm.true_position, arm.true_rotation, arm.finger_gap_m)

    def copy(self) -> Hand:
        return Hand(self.position.copy(), self.rotation.copy(), self.gap_m)

    def moved(self, step_m: np.ndarray, turn_rad: np.ndarray) -> Hand:
        """After a step [3] and a turn (rotation vector [3]), both in the world frame."""
        return Hand(self.position + step_m, rotation_matrix(turn_rad) @ self.rotation, self.gap_m)


@dataclass
class Snapshot:
    """Implements `Scene`. poses: of objects and fixtures, of drawers and the door's hinge; openings: of `JOINTS`."""

    objects: tuple[str, ...]
    fixtures: tuple[str, ...]
    poses: dict[str, TcpPose]
    openings: dict[str, float]
    extents: dict[str, Extent]
    grasps: dict[str, TcpPose | None] = field(default_factory=dict)  # known already, for objects that have not moved
    facing: dict[str, np.ndarray] = field(default_factory=dict)  # rotations that inverse kinematics has chosen

    @classmethod
    def of(cls, env: Any) -> Snapshot:
        """env: an `ArenaEnv` of one world."""
        scene = TrueScene(env)
        names = (*scene.objects, *scene.fixtures, *KITCHEN, *DRAWERS, "door", "table")
        return cls(
            scene.objects,
            scene.fixtures,
            {name: (scene.position_m(name), scene.rotation(name)) for name in names},
            {joint: scene.opening(joint) for joint in JOINTS},
            {name: scene.extent(name) for name in scene.objects},
        )

    def copy(self) -> Snapshot:
        """Poses are replaced, never changed in place, so that they can be shared."""
        same = (dict(self.poses), dict(self.openings), self.extents, dict(self.grasps), self.facing)
        return Snapshot(self.objects, self.fixtures, *same)

    def position_m(self, name: str) -> np.ndarray:
        return self.poses[name][0]

    def rotation(self, name: str) -> np.ndarray:
        return self.poses[name][1]

    def extent(self, object: str) -> Extent:
        return self.extents[object]

    def opening(self, joint: str) -> float:
        return self.openings[joint]

    def grasp(self, arm: Arm, object: str) -> TcpPose | None:
        if object not in self.grasps:
            self.grasps[object] = known_grasp(arm, self, object)
        return self.grasps[object]

    # ---- what moves

    def put(self, object: str, position: np.ndarray, rotation: np.ndarray) -> None:
        self.poses[object] = (position, rotation)
        self.grasps.clear()  # what is near decides how other things are grasped

    def carry(self, object: str, before: Hand, after: Hand) -> None:
        """An object moves along with the hand."""
        turn = after.rotation @ before.rotation.T
        position, rotation = self.poses[object]
        self.put(object, after.position + turn @ (position - before.position), turn @ rotation)

    def slide(self, drawer: str, opening_m: float) -> None:
        """Open a drawer so far; what lies in it moves along."""
        moved = np.array([self.openings[drawer] - opening_m, 0.0, 0.0])
        position, rotation = self.poses[drawer]
        for name in self.objects:
            inside = np.abs(self.position_m(name) - position - [0.14, 0.0, 0.045]) < [0.14, 0.13, 0.06]
            if inside.all():
                self.put(name, self.position_m(name) + moved, self.rotation(name))
        self.poses[drawer] = (position + moved, rotation)
        self.openings[drawer] = opening_m

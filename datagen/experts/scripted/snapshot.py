"""A copy of the scene that can be moved without physics: what labels are rolled out in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

from datagen.experts.scripted.known_grasp import known_grasp
from datagen.experts.scripted.scene import Extent, TcpPose
from datagen.experts.scripted.true_scene import TrueScene
from predimem.envs.arena.fixtures import DRAWERS, JOINTS, KITCHEN
from predimem.envs.arena.robot.arm import Arm
from predimem.envs.arena.robot.rotations import rotation_matrix

OPEN_GAP_M = 0.08
OPENING_SHARE = 0.4  # of the way that is left, the fingers open in a control step,
CLOSING_M = 0.03  # and so far they close
WIDE_RAD_PER_M = 120.0  # scripted skills can grasp across a long side, with 6 mm to spare; a learned actor jams
NEIGHBOUR_M = 0.2  # things further away do not change how an object is grasped
SAME_M, SAME_COS = 0.001, 0.01  # objects that moved less are where they were

Solved = TypeVar("Solved")


@dataclass
class Gripper:
    """Where the gripper is (TCP, world frame) and how far apart its fingers are: all that an expert knows of it."""

    position: np.ndarray
    rotation: np.ndarray
    gap_m: float

    @classmethod
    def of(cls, arm: Arm) -> Gripper:
        """The true one."""
        return cls(arm.true_position, arm.true_rotation, arm.finger_gap_m)

    def copy(self) -> Gripper:
        return Gripper(self.position.copy(), self.rotation.copy(), self.gap_m)

    def moved(self, step_m: np.ndarray, turn_rad: np.ndarray) -> Gripper:
        """After a step [3] and a turn (rotation vector [3]), both in the world frame."""
        return Gripper(self.position + step_m, rotation_matrix(turn_rad) @ self.rotation, self.gap_m)


@dataclass
class Snapshot:
    """Implements `Scene`. poses: of objects and fixtures, of drawers and the door's hinge; openings: of `JOINTS`."""

    objects: tuple[str, ...]
    fixtures: tuple[str, ...]
    poses: dict[str, TcpPose]
    openings: dict[str, float]
    extents: dict[str, Extent]
    grasps: dict[str, TcpPose | None] = field(default_factory=dict)  # known already, for objects that have not moved
    solved: dict[str, Any] = field(default_factory=dict)  # what inverse kinematics was asked, see `once`

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
        same = (
            dict(self.poses),
            dict(self.openings),
            self.extents,
            dict(self.grasps),
            self.solved,
        )
        return Snapshot(self.objects, self.fixtures, *same)

    def position_m(self, name: str) -> np.ndarray:
        return self.poses[name][0]

    def rotation(self, name: str) -> np.ndarray:
        return self.poses[name][1]

    def extent(self, object: str) -> Extent:
        return self.extents[object]

    def opening(self, joint: str) -> float:
        return self.openings[joint]

    def once(self, key: str, solve: Callable[[], Solved]) -> Solved:
        """What `solve` gives, asked once for a key in this scene, its copies and those that take over its grasps."""
        if key not in self.solved:
            self.solved[key] = solve()
        return self.solved[key]

    def grasp(self, arm: Arm, object: str) -> TcpPose | None:
        if object not in self.grasps:
            self.grasps[object] = known_grasp(arm, self, object, WIDE_RAD_PER_M)
        return self.grasps[object]

    def adopt_grasps(self, other: Snapshot) -> None:
        """Take over what `other` knows of grasps where things lie as they do here: finding them takes long."""
        moved = [name for name in self.objects if not self._as_in(other, name)]
        spoilt = {n for name in moved for scene in (self, other) for n in scene._around(scene.position_m(name))}
        for name, grasp in other.grasps.items():
            if name not in spoilt and name not in moved:
                self.grasps.setdefault(name, grasp)
        self.solved = other.solved

    def _as_in(self, other: Snapshot, name: str) -> bool:
        (position, rotation), (there, turned) = self.poses[name], other.poses[name]
        return bool(np.abs(position - there).max() < SAME_M and np.abs(rotation - turned).max() < SAME_COS)

    def _around(self, position: np.ndarray) -> list[str]:
        """The objects whose grasp something at a position may stand in the way of."""
        return [n for n in self.objects if np.linalg.norm(self.position_m(n)[:2] - position[:2]) < NEIGHBOUR_M]

    # ---- what moves

    def put(self, object: str, position: np.ndarray, rotation: np.ndarray) -> None:
        for name in (object, *self._around(self.position_m(object)), *self._around(position)):
            self.grasps.pop(name, None)  # what is near decides how things are grasped
        self.poses[object] = (position, rotation)

    def carry(self, object: str, before: Gripper, after: Gripper) -> None:
        """An object moves along with the gripper."""
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

"""Puts things together of simple shapes, each of which collides, is seen, or both. Metres."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import sapien
from mani_skill.envs.scene import ManiSkillScene
from sapien.physx import PhysxMaterial
from transforms3d.euler import euler2quat

from predimem.envs.arena.objects import FRICTION
from predimem.envs.arena.scene import meshes
from predimem.envs.arena.scene.looks import Look, dress, styled
from predimem.envs.arena.scene.meshes import Mesh
from predimem.envs.arena.unseen.setting import AS_BUILT, Style

ALONG_Z = euler2quat(0, np.pi / 2, 0).tolist()  # SAPIEN's cylinders lie along x

Vector = Sequence[float]


class Parts:
    """Adds collision shapes to one builder (an actor's or a link's) and gathers what is seen of them.

    A shape without a look is not seen. What is seen is put on by `dress`, once the thing is built.
    """

    def __init__(
        self,
        scene: ManiSkillScene,
        builder: Any,
        friction: float = FRICTION,
        density: float = 300.0,
        style: Style = AS_BUILT,
    ):
        self._builder, self._style = builder, style
        self._visible = scene.can_render()  # without a renderer not even a material can be made
        self._surface = PhysxMaterial(friction, friction, 0.0)
        self._density = density
        self._seen: dict[Look, list[Mesh]] = {}

    def box(self, half_m: Vector, centre_m: Vector, look: Look | None = None, yaw_rad: float = 0.0) -> None:
        pose = sapien.Pose(list(centre_m), euler2quat(0, 0, yaw_rad).tolist())
        self._builder.add_box_collision(pose, list(half_m), material=self._surface, density=self._density)
        if look:
            self.show_box(half_m, centre_m, look, yaw_rad)

    def cylinder(self, radius_m: float, half_height_m: float, centre_m: Vector) -> None:
        pose = sapien.Pose(list(centre_m), ALONG_Z)
        self._builder.add_cylinder_collision(
            pose, radius_m, half_height_m, material=self._surface, density=self._density
        )

    def tray(self, half_m: tuple[float, float], height_m: float, floor_m: float, wall_m: float, look: Look) -> None:
        """An open box that stands on z = 0."""
        (a, b), t = half_m, wall_m / 2
        self.box([a, b, floor_m / 2], [0, 0, floor_m / 2], look)
        for side in (-1, 1):
            self.box([a, t, height_m / 2], [0, side * (b - t), height_m / 2], look)
            self.box([t, b, height_m / 2], [side * (a - t), 0, height_m / 2], look)

    def ring(self, radius_m: float, height_m: float, wall_m: float, centre_z_m: float) -> None:
        """The wall of a round vessel, of flat segments."""
        n = 16
        half_chord = radius_m * np.tan(np.pi / n)
        for k in range(n):
            angle = 2 * np.pi * k / n
            centre = [radius_m * np.cos(angle), radius_m * np.sin(angle), centre_z_m]
            self.box([wall_m / 2, half_chord, height_m / 2], centre, yaw_rad=angle)

    def show(self, look: Look, *seen: Mesh) -> None:
        """What is seen, but does not collide."""
        self._seen.setdefault(look, []).extend(seen)

    def show_box(self, half_m: Vector, centre_m: Vector, look: Look, yaw_rad: float = 0.0) -> None:
        (a, b, c), (x, y, z) = half_m, centre_m
        self.show(look, meshes.box((a, b, c), (x, y, z), yaw_rad, look.image_m))

    def dress(self, thing: Any) -> None:
        """thing: what the builder built, an actor or a link."""
        if self._visible and self._seen:
            dress(thing, tuple((styled(look, self._style), tuple(m)) for look, m in self._seen.items()))

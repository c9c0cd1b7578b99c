"""Builds the furniture and the objects of a scene out of boxes and cylinders: nothing is downloaded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import sapien
from mani_skill.envs.scene import ManiSkillScene
from sapien.physx import PhysxMaterial
from sapien.render import RenderMaterial
from transforms3d.euler import euler2quat

from datagen.arena import fixtures as f
from datagen.arena.objects import DENSITY_KG_M3, FRICTION, OBJECTS, RGB

WOOD, WOOD_LIGHT, WOOD_DARK = (0.50, 0.33, 0.18), (0.66, 0.46, 0.27), (0.40, 0.26, 0.14)
METAL, BLACK, STEEL, WHITE = (0.55, 0.56, 0.60), (0.10, 0.10, 0.11), (0.78, 0.79, 0.82), (0.93, 0.93, 0.95)
ALONG_Z = euler2quat(0, np.pi / 2, 0)  # SAPIEN's cylinders lie along x
HIDDEN_M = (0.0, 0.0, -5.0)  # where kinematic things are built before their first reset

Vector = Sequence[float]


def material(colour: RGB, roughness: float = 0.7, metallic: float = 0.0) -> RenderMaterial:
    made = RenderMaterial()
    made.set_base_color([*colour, 1.0])
    made.roughness, made.metallic, made.specular = roughness, metallic, 0.2
    return made


class Parts:
    """Adds collision shapes with their visuals to one builder (an actor's or a link's)."""

    def __init__(self, scene: ManiSkillScene, builder: Any, friction: float = FRICTION, density: float = 300.0):
        self._builder = builder
        self._visible = scene.can_render()  # without a renderer not even a material can be made
        self._surface = PhysxMaterial(friction, friction, 0.0)
        self._density = density

    def box(self, half_m: Vector, centre_m: Vector, colour: RGB, yaw_rad: float = 0.0, solid: bool = True) -> None:
        pose = sapien.Pose(list(centre_m), euler2quat(0, 0, yaw_rad))
        if solid:
            self._builder.add_box_collision(pose, list(half_m), material=self._surface, density=self._density)
        if self._visible:
            self._builder.add_box_visual(pose, list(half_m), material=material(colour))

    def cylinder(
        self, radius_m: float, half_height_m: float, centre_m: Vector, colour: RGB, solid: bool = True
    ) -> None:
        pose = sapien.Pose(list(centre_m), ALONG_Z)
        if solid:
            self._builder.add_cylinder_collision(
                pose, radius_m, half_height_m, material=self._surface, density=self._density
            )
        if self._visible:
            self._builder.add_cylinder_visual(pose, radius_m, half_height_m, material=material(colour))

    def tray(self, half_m: tuple[float, float], height_m: float, floor_m: float, wall_m: float, colour: RGB) -> None:
        """An open box that stands on z = 0."""
        (a, b), t = half_m, wall_m / 2
        self.box([a, b, floor_m / 2], [0, 0, floor_m / 2], colour)
        for side in (-1, 1):
            self.box([a, t, height_m / 2], [0, side * (b - t), height_m / 2], colour)
            self.box([t, b, height_m / 2], [side * (a - t), 0, height_m / 2], colour)

    def ring(self, radius_m: float, height_m: float, wall_m: float, centre_z_m: float, colour: RGB) -> None:
        """The wall of a round vessel, of flat segments."""
        n = 16
        half_chord = radius_m * np.tan(np.pi / n)
        for k in range(n):
            angle = 2 * np.pi * k / n
            centre = [radius_m * np.cos(angle), radius_m * np.sin(angle), centre_z_m]
            self.box([wall_m / 2, half_chord, height_m / 2], centre, colour, yaw_rad=angle)


def build_table(scene: ManiSkillScene) -> Any:
    builder = scene.create_actor_builder()
    parts = Parts(scene, builder)
    parts.box([0.65, 0.95, 0.02], [-0.1, 0, -0.02], (0.72, 0.66, 0.58))
    builder.initial_pose = sapien.Pose()
    return builder.build_static(name="table")


def build_object(scene: ManiSkillScene, name: str) -> Any:
    spec = OBJECTS[name]
    builder = scene.create_actor_builder()
    parts = Parts(scene, builder, density=DENSITY_KG_M3)
    a, b, c = spec.half_m
    if spec.shape == "box":
        parts.box(spec.half_m, [0, 0, 0], spec.colour)
        parts.box([a + 0.0004, b * 0.62, c * 0.62], [0, 0, 0], spec.label, solid=False)
        parts.box([a * 0.62, b + 0.0004, c * 0.62], [0, 0, 0], spec.label, solid=False)
        parts.box([a * 0.62, b * 0.62, c + 0.0004], [0, 0, 0], spec.label, solid=False)
        parts.box([a * 0.25, b * 0.62, c + 0.0008], [0, 0, 0], spec.accent, solid=False)
    else:
        parts.cylinder(a, c, [0, 0, 0], spec.colour)
        parts.cylinder(a + 0.0004, c * 0.5, [0, 0, -c * 0.1], spec.label, solid=False)
        parts.cylinder(a + 0.0008, c * 0.14, [0, 0, -c * 0.1], spec.accent, solid=False)
    builder.initial_pose = sapien.Pose(list(HIDDEN_M))
    return builder.build(name=name)


def build_fixture(scene: ManiSkillScene, name: str) -> Any:
    """An actor that cannot be moved, or an articulation (cabinet, microwave)."""
    kind = f.FIXTURES[name].kind
    if kind == "cabinet":
        return _cabinet(scene)
    if kind == "microwave":
        return _microwave(scene)
    builder = scene.create_actor_builder()
    parts = Parts(scene, builder)
    if kind == "basket":
        half = (f.BASKET_HALF_M, f.BASKET_HALF_M)
        parts.tray(half, f.BASKET_HEIGHT_M, f.BASKET_WALL_M, f.BASKET_WALL_M, (0.80, 0.60, 0.25))
    elif kind == "drainer":
        _drainer(parts)
    elif kind == "plate":
        parts.cylinder(f.PLATE_RADIUS_M, f.PLATE_THICKNESS_M / 2, [0, 0, f.PLATE_THICKNESS_M / 2], WHITE)
        parts.ring(f.PLATE_RADIUS_M, 0.012, 0.006, 0.010, WHITE)
    elif kind == "frying_pan":
        parts.cylinder(f.PAN_RADIUS_M, 0.003, [0, 0, 0.003], BLACK)
        parts.ring(f.PAN_RADIUS_M, f.PAN_HEIGHT_M, 0.006, f.PAN_HEIGHT_M / 2, BLACK)
        parts.box([0.07, 0.010, 0.006], [-f.PAN_RADIUS_M - 0.065, 0, f.PAN_HEIGHT_M - 0.006], (0.25, 0.15, 0.10))
    elif kind == "mug":
        colour = (0.82, 0.12, 0.12) if name == "mug_red" else WHITE
        parts.cylinder(f.MUG_RADIUS_M, 0.004, [0, 0, 0.004], colour)
        parts.ring(f.MUG_RADIUS_M, f.MUG_HEIGHT_M, 0.005, f.MUG_HEIGHT_M / 2, colour)
        parts.box([0.005, 0.018, 0.026], [0, f.MUG_RADIUS_M + 0.016, f.MUG_HEIGHT_M / 2], colour)
    elif kind == "shelf":
        _shelf(parts)
    builder.initial_pose = sapien.Pose(list(HIDDEN_M))
    return builder.build_kinematic(name=name)


def build_mat(scene: ManiSkillScene, name: str) -> Any:
    """A thin coloured disc that marks a place: a picture, not a body."""
    builder = scene.create_actor_builder()
    Parts(scene, builder).cylinder(0.05, 0.001, [0, 0, 0.001], (0.85, 0.10, 0.12), solid=False)
    builder.initial_pose = sapien.Pose(list(HIDDEN_M))
    return builder.build_kinematic(name=name)


def _drainer(parts: Parts) -> None:
    """A dish rack: a tray, rods along its rim."""
    a, b = f.DRAINER_HALF_M
    parts.tray((a, b), 0.016, f.DRAINER_FLOOR_M, 0.006, STEEL)
    h = f.DRAINER_HEIGHT_M
    for side in (-1, 1):
        parts.box([a, 0.003, 0.003], [0, side * (b - 0.003), h], STEEL)
        parts.box([0.003, b, 0.003], [side * (a - 0.003), 0, h], STEEL)
        for k in range(-3, 4):
            parts.box([0.002, 0.002, h / 2], [k * a / 3.4, side * (b - 0.003), h / 2], STEEL)
            parts.box([0.002, 0.002, h / 2], [side * (a - 0.003), k * b / 3.4, h / 2], STEEL)


def _shelf(parts: Parts) -> None:
    """A shelf cabinet, open to the front and to the top: a floor, a back, two sides."""
    (a, b), h, floor = f.SHELF_HALF_M, f.SHELF_HEIGHT_M, f.SHELF_FLOOR_M
    parts.box([a, b, floor / 2], [0, 0, floor / 2], WOOD_LIGHT)
    parts.box([0.005, b, h / 2], [a - 0.005, 0, h / 2], WOOD)
    for side in (-1, 1):
        parts.box([a, 0.005, 0.03], [0, side * (b - 0.005), 0.03], WOOD)


def _cabinet(scene: ManiSkillScene) -> Any:
    c, t = f.CABINET, f.CABINET.wall_m
    builder = scene.create_articulation_builder()
    body = builder.create_link_builder()
    body.set_name("body")
    parts = Parts(scene, body)
    w, d, z0 = c.width_m, c.depth_m, c.plinth_m
    h = 3 * c.drawer_height_m + 4 * t
    parts.box([d / 2, w / 2, z0 / 2], [d / 2, 0, z0 / 2], WOOD_DARK)
    for side in (-1, 1):
        parts.box([d / 2, t / 2, h / 2], [d / 2, side * (w / 2 - t / 2), z0 + h / 2], WOOD)
    parts.box([t / 2, w / 2, h / 2], [d - t / 2, 0, z0 + h / 2], WOOD)
    for k in range(4):
        parts.box([d / 2, w / 2, t / 2], [d / 2, 0, z0 + t / 2 + k * (c.drawer_height_m + t)], WOOD)
    for name in f.DRAWERS:
        _drawer(scene, builder, body, name)
    builder.initial_pose = sapien.Pose([1.0, 0, 0])
    cabinet = builder.build(name="cabinet", fix_root_link=True)
    for joint in cabinet.active_joints:  # the articulation builder ignores `friction=`
        joint.set_friction(c.friction)
    return cabinet


def _drawer(scene: ManiSkillScene, builder: Any, body: Any, name: str) -> None:
    c = f.CABINET
    link = builder.create_link_builder(body)
    link.set_name(name)
    link.set_joint_name(name)
    opens = euler2quat(0, 0, np.pi)  # a prismatic joint moves along the x axis of its frame: towards the robot
    link.set_joint_properties(
        "prismatic",
        [[0, c.travel_m]],
        sapien.Pose([0, 0, c.drawer_floor_m(name)], opens),
        sapien.Pose([0, 0, 0], opens),
        friction=c.friction,
        damping=c.damping,
    )
    parts = Parts(scene, link)
    half_w = c.width_m / 2 - c.wall_m - 0.004
    d, wall, wall_h, lift = c.depth_m - c.wall_m - 0.01, 0.006, 0.6 * c.drawer_height_m, 0.003
    mid = c.drawer_height_m / 2
    parts.box([0.006, c.width_m / 2 - c.wall_m - 0.002, mid - 0.003], [-0.006, 0, mid], WOOD_LIGHT)
    parts.box([d / 2, half_w, wall / 2], [d / 2, 0, wall / 2 + lift], WOOD_LIGHT)
    for side in (-1, 1):
        parts.box([d / 2, wall / 2, wall_h / 2], [d / 2, side * (half_w - wall / 2), wall_h / 2 + lift], WOOD_LIGHT)
    parts.box([wall / 2, half_w, wall_h / 2], [d - wall / 2, 0, wall_h / 2 + lift], WOOD_LIGHT)
    _bar_handle(parts, c.handle_in_drawer_m, c.handle_radius_m, c.handle_length_m, c.handle_offset_m)


def _microwave(scene: ManiSkillScene) -> Any:
    m, t = f.MICROWAVE, f.MICROWAVE.wall_m
    builder = scene.create_articulation_builder()
    body = builder.create_link_builder()
    body.set_name("microwave_body")
    parts = Parts(scene, body)
    w, d, h, z0 = m.width_m, m.depth_m, m.height_m, m.plinth_m
    parts.box([d / 2, w / 2, z0 / 2], [d / 2, 0, z0 / 2], METAL)
    for z in (t / 2, h - t / 2):
        parts.box([d / 2, w / 2, t / 2], [d / 2, 0, z0 + z], METAL)
    for side in (-1, 1):
        parts.box([d / 2, t / 2, h / 2], [d / 2, side * (w / 2 - t / 2), z0 + h / 2], METAL)
    parts.box([t / 2, w / 2, h / 2], [d - t / 2, 0, z0 + h / 2], METAL)

    door = builder.create_link_builder(body)
    door.set_name("door")
    door.set_joint_name("door")
    upwards = euler2quat(0, -np.pi / 2, 0)  # a revolute joint turns about the x axis of its frame
    door.set_joint_properties(
        "revolute",
        [[0, m.limit_rad]],
        sapien.Pose(list(m.hinge_m), upwards),
        sapien.Pose([0, 0, 0], upwards),
        friction=m.friction,
        damping=m.damping,
    )
    parts = Parts(scene, door)
    dt = m.door_m
    parts.box([dt / 2, w / 2, h / 2 - 0.002], [-dt / 2 - 0.001, w / 2, h / 2], (0.20, 0.20, 0.24))
    parts.box([0.0005, w * 0.32, h * 0.32], [-dt - 0.0015, w * 0.42, h / 2], (0.03, 0.04, 0.06), solid=False)
    _bar_handle(parts, m.handle_in_door_m, m.handle_radius_m, m.handle_length_m, m.handle_offset_m)
    builder.initial_pose = sapien.Pose([1.0, -1.0, 0])
    microwave = builder.build(name="microwave", fix_root_link=True)
    for joint in microwave.active_joints:
        joint.set_friction(m.friction)
    return microwave


def _bar_handle(parts: Parts, centre_m: Vector, radius_m: float, length_m: float, offset_m: float) -> None:
    """A vertical bar on two stubs, `offset_m` in front of what it opens."""
    x, y, z = centre_m
    parts.box([radius_m, radius_m, length_m / 2], [x, y, z], STEEL)
    for side in (-1, 1):
        stub = [x + offset_m / 2, y, z + side * (length_m / 2 - 0.005)]
        parts.box([offset_m / 2, 0.005, 0.005], stub, STEEL)

"""Builds the furniture of a scene out of simple shapes: nothing is downloaded."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import sapien
from mani_skill.envs.scene import ManiSkillScene
from transforms3d.euler import euler2quat

from predimem.envs.arena import fixtures as f
from predimem.envs.arena.scene import looks
from predimem.envs.arena.scene.looks import Look
from predimem.envs.arena.scene.meshes import box, cylinder, rod, turned
from predimem.envs.arena.scene.parts import Parts, Vector
from predimem.envs.arena.unseen.setting import AS_BUILT, Style

HIDDEN_M = (0.0, 0.0, -5.0)  # where kinematic things are built before their first reset


def build_table(scene: ManiSkillScene, style: Style = AS_BUILT) -> Any:
    """The table, and the kitchen around it, which is only seen."""
    builder: Any = scene.create_actor_builder()
    parts = Parts(scene, builder, style=style)
    parts.box([0.65, 0.95, 0.02], [-0.1, 0, -0.02], looks.STONE)
    builder.initial_pose = sapien.Pose()
    table = builder.build_static(name="table")
    parts.dress(table)
    if scene.can_render():
        looks.build_kitchen(scene, style)
    return table


def build_fixture(scene: ManiSkillScene, name: str, style: Style = AS_BUILT) -> Any:
    """An actor that cannot be moved, or an articulation (cabinet, microwave)."""
    kind = f.FIXTURES[name].kind
    if kind == "cabinet":
        return _cabinet(scene, style)
    if kind == "microwave":
        return _microwave(scene, style)
    builder: Any = scene.create_actor_builder()
    parts = Parts(scene, builder, style=style)
    {
        "basket": _basket,
        "drainer": _drainer,
        "plate": _plate,
        "frying_pan": _frying_pan,
        "mug": lambda parts: _mug(parts, looks.RED if name == "mug_red" else looks.WHITE),
        "shelf": _shelf,
    }[kind](parts)
    builder.initial_pose = sapien.Pose(list(HIDDEN_M))
    fixture = builder.build_kinematic(name=name)
    parts.dress(fixture)
    return fixture


def build_mat(scene: ManiSkillScene, name: str) -> Any:
    """A thin coloured disc that marks a place: an image, not a body."""
    builder: Any = scene.create_actor_builder()
    parts = Parts(scene, builder)
    radius = f.BASKET_MAT_RADIUS_M if "basket" in name else f.MAT_RADIUS_M
    parts.show(looks.MAT, cylinder(radius, 0.001, (0, 0, 0.001)))
    builder.initial_pose = sapien.Pose(list(HIDDEN_M))
    mat = builder.build_kinematic(name=name)
    parts.dress(mat)
    return mat


def _basket(parts: Parts) -> None:
    a, h = f.BASKET_HALF_M, f.BASKET_HEIGHT_M
    parts.tray((a, a), h, f.BASKET_WALL_M, f.BASKET_WALL_M, looks.WICKER)
    for side in (-1, 1):  # a dark rim
        parts.show_box([a + 0.003, 0.005, 0.004], [0, side * (a - 0.003), h], looks.WOOD_DARK)
        parts.show_box([0.005, a + 0.003, 0.004], [side * (a - 0.003), 0, h], looks.WOOD_DARK)


def _plate(parts: Parts) -> None:
    r, t = f.PLATE_RADIUS_M, f.PLATE_THICKNESS_M
    parts.cylinder(r, t / 2, [0, 0, t / 2])
    parts.ring(r, 0.012, 0.006, 0.010)
    rim = ((r + 0.003, 0.012), (r + 0.003, 0.016), (r - 0.003, 0.016))
    parts.show(looks.WHITE, turned(((0.05, 0), *rim, (0.06, t), (0, t)), sides=28))
    parts.show(looks.BLUE, turned(((0.062, t + 0.0012), (0.058, t + 0.0006)), sides=28))


def _frying_pan(parts: Parts) -> None:
    r, h = f.PAN_RADIUS_M, f.PAN_HEIGHT_M
    parts.cylinder(r, 0.003, [0, 0, 0.003])
    parts.ring(r, h, 0.006, h / 2)
    parts.box([0.07, 0.010, 0.006], [-r - 0.065, 0, h - 0.006], Look((0.45, 0.26, 0.14)))
    parts.show(looks.BLACK, turned(((0, 0), (r, 0), (r + 0.003, h)), sides=28))
    parts.show(looks.IRON, turned(((r - 0.003, h), (r - 0.004, 0.006), (0, 0.006)), sides=28))
    parts.show(looks.STEEL, turned(((r + 0.003, h), (r - 0.003, h)), sides=28))


def _mug(parts: Parts, look: Look) -> None:
    r, h = f.MUG_RADIUS_M, f.MUG_HEIGHT_M
    parts.cylinder(r, 0.004, [0, 0, 0.004])
    parts.ring(r, h, 0.005, h / 2)
    parts.box([0.005, 0.018, 0.026], [0, r + 0.016, h / 2])
    parts.show(look, turned(((0, 0), (r + 0.002, 0), (r + 0.002, h), (r - 0.003, h))))
    parts.show(looks.WHITE, turned(((r - 0.003, h), (r - 0.003, 0.008), (0, 0.008))))
    bow = [(0.0, r + 0.031 * math.sin(t), h / 2 - 0.023 * math.cos(t)) for t in np.linspace(0, math.pi, 9)]
    parts.show(look, rod(tuple(bow), 0.005))


def _drainer(parts: Parts) -> None:
    """A dish rack: a tray, rods along its rim."""
    a, b = f.DRAINER_HALF_M
    parts.tray((a, b), 0.016, f.DRAINER_FLOOR_M, 0.006, looks.TEAL)
    h = f.DRAINER_HEIGHT_M
    for side in (-1, 1):
        parts.box([a, 0.003, 0.003], [0, side * (b - 0.003), h], looks.STEEL)
        parts.box([0.003, b, 0.003], [side * (a - 0.003), 0, h], looks.STEEL)
        for k in range(-3, 4):
            parts.box([0.002, 0.002, h / 2], [k * a / 3.4, side * (b - 0.003), h / 2], looks.STEEL)
            parts.box([0.002, 0.002, h / 2], [side * (a - 0.003), k * b / 3.4, h / 2], looks.STEEL)


def _shelf(parts: Parts) -> None:
    """A shelf cabinet, open to the front and to the top: a floor, a back, two sides."""
    (a, b), h, floor = f.SHELF_HALF_M, f.SHELF_HEIGHT_M, f.SHELF_FLOOR_M
    parts.box([a, b, floor / 2], [0, 0, floor / 2], looks.WOOD_PALE)
    parts.box([0.005, b, h / 2], [a - 0.005, 0, h / 2], looks.WOOD_LIGHT)
    for side in (-1, 1):
        parts.box([a, 0.005, 0.03], [0, side * (b - 0.005), 0.03], looks.WOOD_LIGHT)


def _cabinet(scene: ManiSkillScene, style: Style) -> Any:
    c, t = f.CABINET, f.CABINET.wall_m
    builder: Any = scene.create_articulation_builder()
    body = builder.create_link_builder()
    body.set_name("body")
    parts = Parts(scene, body, style=style)
    w, d, z0 = c.width_m, c.depth_m, c.plinth_m
    h = 3 * c.drawer_height_m + 4 * t
    parts.box([d / 2, w / 2, z0 / 2], [d / 2, 0, z0 / 2], looks.WOOD_DARK)
    for side in (-1, 1):
        parts.box([d / 2, t / 2, h / 2], [d / 2, side * (w / 2 - t / 2), z0 + h / 2], looks.WOOD)
    parts.box([t / 2, w / 2, h / 2], [d - t / 2, 0, z0 + h / 2], looks.WOOD)
    for k in range(4):
        parts.box([d / 2, w / 2, t / 2], [d / 2, 0, z0 + t / 2 + k * (c.drawer_height_m + t)], looks.WOOD)
    seen = {"body": parts, **{name: _drawer(scene, builder, body, name, style) for name in f.DRAWERS}}
    builder.initial_pose = sapien.Pose([1.0, 0, 0])
    cabinet = builder.build(name="cabinet", fix_root_link=True)
    for joint in cabinet.active_joints:  # the articulation builder ignores `friction=`
        joint.set_friction(c.friction)
    for name, link_parts in seen.items():
        link_parts.dress(cabinet.links_map[name])
    return cabinet


def _drawer(scene: ManiSkillScene, builder: Any, body: Any, name: str, style: Style) -> Parts:
    c = f.CABINET
    link = builder.create_link_builder(body)
    link.set_name(name)
    link.set_joint_name(name)
    opens = euler2quat(0, 0, np.pi).tolist()  # a prismatic joint moves along the x axis of its frame: towards the robot
    link.set_joint_properties(
        "prismatic",
        [[0, c.travel_m]],
        sapien.Pose([0, 0, c.drawer_floor_m(name)], opens),
        sapien.Pose([0, 0, 0], opens),
        friction=c.friction,
        damping=c.damping,
    )
    parts = Parts(scene, link, style=style)
    half_w = c.width_m / 2 - c.wall_m - 0.004
    d, wall, wall_h, lift = c.depth_m - c.wall_m - 0.01, 0.006, 0.6 * c.drawer_height_m, 0.003
    mid = c.drawer_height_m / 2
    lap = 0.002  # over the cabinet's face, or the cameras would see through the gap what is shut inside
    parts.box([0.006, c.width_m / 2 - c.wall_m + lap, mid + lap], [-0.006, 0, mid], looks.WOOD_LIGHT)
    parts.box([d / 2, half_w, wall / 2], [d / 2, 0, wall / 2 + lift], looks.WOOD_PALE)
    for side in (-1, 1):
        parts.box(
            [d / 2, wall / 2, wall_h / 2], [d / 2, side * (half_w - wall / 2), wall_h / 2 + lift], looks.WOOD_PALE
        )
    parts.box([wall / 2, half_w, wall_h / 2], [d - wall / 2, 0, wall_h / 2 + lift], looks.WOOD_PALE)
    _bar_handle(parts, c.handle_in_drawer_m, c.handle_radius_m, c.handle_length_m, c.handle_offset_m)
    return parts


def _microwave(scene: ManiSkillScene, style: Style) -> Any:
    m, t = f.MICROWAVE, f.MICROWAVE.wall_m
    builder: Any = scene.create_articulation_builder()
    body = builder.create_link_builder()
    body.set_name("microwave_body")
    body_parts = Parts(scene, body, style=style)
    w, d, h, z0 = m.width_m, m.depth_m, m.height_m, m.plinth_m
    body_parts.box([d / 2, w / 2, z0 / 2], [d / 2, 0, z0 / 2], looks.BLACK)
    for z in (t / 2, h - t / 2):
        body_parts.box([d / 2, w / 2, t / 2], [d / 2, 0, z0 + z], looks.STEEL)
    for side in (-1, 1):
        body_parts.box([d / 2, t / 2, h / 2], [d / 2, side * (w / 2 - t / 2), z0 + h / 2], looks.STEEL)
    body_parts.box([t / 2, w / 2, h / 2], [d - t / 2, 0, z0 + h / 2], looks.STEEL)
    inner = [(d - t) / 2, w / 2 - t, 0.0002]
    body_parts.show_box(inner, [inner[0], 0, z0 + t + 0.0002], looks.ENAMEL)

    door = builder.create_link_builder(body)
    door.set_name("door")
    door.set_joint_name("door")
    upwards = euler2quat(0, -np.pi / 2, 0).tolist()  # a revolute joint turns about the x axis of its frame
    door.set_joint_properties(
        "revolute",
        [[0, m.limit_rad]],
        sapien.Pose(list(m.hinge_m), upwards),
        sapien.Pose([0, 0, 0], upwards),
        friction=m.friction,
        damping=m.damping,
    )
    parts = Parts(scene, door, style=style)
    dt = m.door_m
    parts.box([dt / 2, w / 2, h / 2 - 0.002], [-dt / 2 - 0.001, w / 2, h / 2], looks.BLACK)
    front = box((0.0004, w / 2, h / 2 - 0.002), (-dt - 0.0012, w / 2, h / 2))
    parts.show(Look(image="microwave_front", roughness=0.4), front)
    _bar_handle(parts, m.handle_in_door_m, m.handle_radius_m, m.handle_length_m, m.handle_offset_m)
    builder.initial_pose = sapien.Pose([1.0, -1.0, 0])
    microwave = builder.build(name="microwave", fix_root_link=True)
    for joint in microwave.active_joints:
        joint.set_friction(m.friction)
    body_parts.dress(microwave.links_map["microwave_body"])
    parts.dress(microwave.links_map["door"])
    return microwave


def _bar_handle(parts: Parts, centre_m: Vector, radius_m: float, length_m: float, offset_m: float) -> None:
    """A vertical bar on two stubs, `offset_m` in front of what it opens."""
    x, y, z = centre_m
    parts.box([radius_m, radius_m, length_m / 2], [x, y, z], looks.STEEL)
    for side in (-1, 1):
        stub = [x + offset_m / 2, y, z + side * (length_m / 2 - 0.005)]
        parts.box([offset_m / 2, 0.005, 0.005], stub, looks.STEEL)

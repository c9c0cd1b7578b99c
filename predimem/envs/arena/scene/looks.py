"""How the arena looks: materials, the lights, and the kitchen around the table. Images only, no physics.

Materials, textures and the shapes that carry them are made once per process and shared by every scene:
nothing may change them afterwards.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import sapien
from mani_skill.envs.scene import ManiSkillScene
from sapien.render import RenderBodyComponent, RenderMaterial, RenderShapeTriangleMesh, RenderTexture2D

from predimem.envs.arena.objects import RGB
from predimem.envs.arena.scene import textures
from predimem.envs.arena.scene.hues import turn_hue
from predimem.envs.arena.scene.meshes import Mesh, box, merge
from predimem.envs.arena.unseen.setting import Lamps, Style

MIPMAPS = 5


@dataclass(frozen=True)
class Look:
    """A surface. colour: sRGB in [0, 1]; image, if any, replaces it: a name that `textures.paint` knows.

    hue_deg: how far the hues of colour and image are turned; greys are tinted. 0: not at all.
    """

    colour: RGB = (1.0, 1.0, 1.0)
    image: str = ""
    roughness: float = 0.7
    metallic: float = 0.0
    image_m: float = 0.0  # the side of one copy; 0 fits one copy to each face
    hue_deg: int = 0


WOOD, WOOD_LIGHT = Look(image="wood", image_m=0.12), Look(image="wood_light", image_m=0.12)
WOOD_DARK, WOOD_PALE = Look(image="wood_dark", image_m=0.12), Look(image="wood_pale", image_m=0.12)
STONE, WICKER = Look(image="stone", image_m=0.25), Look(image="wicker", image_m=0.03)
TILES, FLOOR = Look(image="tiles", image_m=0.10), Look(image="floor", image_m=0.5)
STEEL, TEAL = Look((0.80, 0.81, 0.84), roughness=0.35), Look((0.30, 0.62, 0.62), roughness=0.4)
ENAMEL, BLACK = Look((0.88, 0.89, 0.90)), Look((0.13, 0.13, 0.14), roughness=0.4)
IRON, WHITE = Look((0.23, 0.23, 0.25), roughness=0.4), Look((0.95, 0.95, 0.96), roughness=0.3)
RED, BLUE = Look((0.86, 0.10, 0.12), roughness=0.3), Look((0.16, 0.30, 0.72), roughness=0.3)
MAT = Look((0.90, 0.05, 0.10))
REPEATED = tuple(look.image for look in (WOOD, WOOD_LIGHT, WOOD_DARK, WOOD_PALE, STONE, WICKER, TILES, FLOOR))

Painted = tuple[tuple[Look, tuple[Mesh, ...]], ...]


@functools.cache
def material(look: Look) -> RenderMaterial:
    made = RenderMaterial()
    colour = turn_hue(np.array(look.colour), look.hue_deg)
    made.base_color = [*(float(channel) ** 2.2 for channel in colour), 1.0]  # the shaders work in linear colours
    made.roughness, made.metallic, made.specular = look.roughness, look.metallic, 0.3
    if look.image:
        made.base_color_texture = _texture(look.image, look.image_m > 0, look.hue_deg)
    return made


@functools.cache
def _texture(image: str, repeated: bool, hue_deg: int) -> RenderTexture2D:
    """What is repeated fills most of what a camera sees, so it is kept in linear colours: a software driver is
    slow to make these of sRGB at every look-up. A label is not, as seen from afar its colours would get paler.
    """
    painted = textures.paint(image)
    if hue_deg:
        painted = np.round(255 * turn_hue(painted / 255.0, hue_deg)).astype(np.uint8)
    rows = painted[::-1]  # v = 0 is the first row here, the lower edge in a `Mesh`
    if repeated:
        part = rows / 255.0
        linear = np.where(part <= 0.04045, part / 12.92, ((part + 0.055) / 1.055) ** 2.4)
        pixels = np.concatenate([linear, np.ones((*rows.shape[:2], 1))], axis=2).astype(np.float32)
        return RenderTexture2D(pixels, "R32G32B32A32Sfloat", MIPMAPS, "linear", "repeat", False)
    opaque = np.full((*rows.shape[:2], 1), 255, np.uint8)
    pixels = np.ascontiguousarray(np.concatenate([rows, opaque], axis=2))
    return RenderTexture2D(pixels, "R8G8B8A8Unorm", MIPMAPS, "linear", "repeat", True)


@functools.cache
def _body(painted: Painted) -> RenderBodyComponent:
    """One shape for each look: an image costs by the shape. The same meshes give the same body."""
    body = RenderBodyComponent()
    for look, meshes in painted:
        mesh = merge(meshes)
        body.attach(
            RenderShapeTriangleMesh(
                vertices=mesh.vertices,
                triangles=mesh.triangles,
                normals=mesh.normals,
                uvs=mesh.uvs,
                material=material(look),
            )
        )
    return body


def dress(thing: Any, painted: Painted) -> None:
    """Make an actor or a link of ManiSkill visible, in all its worlds."""
    for held in thing._objs:
        entity = held if isinstance(held, sapien.Entity) else held.entity
        entity.add_component(_body(painted).clone())  # a clone shares meshes and materials


def styled(look: Look, style: Style) -> Look:
    """The look of a surface of a thing with this style."""
    if style.pattern and look.image_m:
        number = len(REPEATED) * (style.pattern - 1) + REPEATED.index(look.image)
        look = replace(look, image=f"{textures.PATTERN}{number}")
    return replace(look, hue_deg=style.hue_deg)


def light_scene(scene: ManiSkillScene, shadow: bool, lamps: Lamps) -> None:
    """shadow: whether the first lamp casts shadows."""
    scene.set_ambient_light(list(lamps.ambient))
    scene.add_directional_light(
        list(lamps.direction),
        list(lamps.colour),
        shadow=shadow,
        position=[-0.1, 0.0, 0.0],
        shadow_scale=0.95,
        shadow_near=-2.0,
        shadow_far=2.0,
        shadow_map_size=1024,
    )
    scene.add_directional_light(list(lamps.fill_direction), list(lamps.fill_colour))


def build_kitchen(scene: ManiSkillScene, style: Style) -> None:
    """Tiled walls and a floor behind the table: they have no collision shapes and no name in the scene."""
    walls = (
        box((0.02, 2.0, 0.95), (0.62, 0.2, 0.2), 0.0, TILES.image_m),
        box((2.0, 0.02, 0.95), (-1.0, 1.60, 0.2), 0.0, TILES.image_m),
    )
    floor = box((2.0, 2.0, 0.01), (-1.3, 0.0, -0.76), 0.0, FLOOR.image_m)
    legs = box((0.60, 0.90, 0.36), (-0.1, 0, -0.40))
    painted = tuple((styled(look, style), seen) for look, seen in ((TILES, walls), (FLOOR, (floor,)), (WHITE, (legs,))))
    for world in scene.sub_scenes:
        entity = sapien.Entity()
        entity.name = "kitchen"
        entity.add_component(_body(painted).clone())
        world.add_entity(entity)

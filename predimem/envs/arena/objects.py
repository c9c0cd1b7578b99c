"""The things that are picked, placed and poured: size, weight and look. Metres, kilograms, sRGB in [0, 1].

The origin of an object is its centre; its z axis points up when it stands as it was bought.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

RGB = tuple[float, float, float]
Form = Literal["box", "carton", "can", "bottle"]
DENSITY_KG_M3 = 400.0
FRICTION = 1.0


@dataclass(frozen=True)
class ObjectSpec:
    """An object: what it collides as and what it looks like.

    half_m: half extents; of a cylinder (axis z) radius, radius, half height.
    shape: what collides.
    form: what is seen; it stays within `half_m`, and its mouth, if it is pourable, is in the middle of its top.
    colour: the colour of what the label leaves free.
    label: an image of `scene.textures.PAINTERS`.
    """

    shape: Literal["box", "cylinder"]
    half_m: tuple[float, float, float]
    form: Form
    colour: RGB
    label: str
    pourable: bool = False

    @property
    def half_height_m(self) -> float:
        return self.half_m[2]


def _box(half_m: tuple[float, float, float], label: str) -> ObjectSpec:
    return ObjectSpec("box", half_m, "box", (1.0, 1.0, 1.0), label)


def _carton(colour: RGB, label: str) -> ObjectSpec:
    return ObjectSpec("box", (0.024, 0.024, 0.050), "carton", colour, label, pourable=True)


OBJECTS: dict[str, ObjectSpec] = {
    "cookies": _box((0.024, 0.034, 0.022), "cookies"),
    "butter": _box((0.020, 0.036, 0.017), "butter"),
    "popcorn": _box((0.023, 0.030, 0.032), "popcorn"),
    "cream_cheese": _box((0.021, 0.032, 0.020), "cream_cheese"),
    "chocolate_pudding": _box((0.022, 0.028, 0.020), "chocolate_pudding"),
    "tomato_sauce": ObjectSpec("cylinder", (0.025, 0.025, 0.045), "can", (0.83, 0.84, 0.87), "tomato_sauce", True),
    "milk": _carton((0.97, 0.97, 0.98), "milk"),
    "orange_juice": _carton((0.98, 0.56, 0.08), "orange_juice"),
    "wine_bottle": ObjectSpec("cylinder", (0.022, 0.022, 0.060), "bottle", (0.10, 0.30, 0.16), "wine", True),
}

# Things that no task names and no demonstration shows: see `predimem.envs.arena.unseen.distractors`.
DISTRACTORS: dict[str, ObjectSpec] = {
    "tea": _box((0.023, 0.030, 0.028), "tea"),
    "soap": _box((0.021, 0.033, 0.018), "soap"),
    "oats": _box((0.022, 0.028, 0.036), "oats"),
    "mustard": ObjectSpec("cylinder", (0.024, 0.024, 0.038), "can", (0.83, 0.84, 0.87), "mustard"),
}

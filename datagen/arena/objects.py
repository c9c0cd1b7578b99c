"""The things that are picked, placed and poured: size, weight and look. Metres, kilograms, RGB in [0, 1].

The origin of an object is its centre; its z axis points up when it stands as it was bought.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

RGB = tuple[float, float, float]
DENSITY_KG_M3 = 400.0
FRICTION = 1.0


@dataclass(frozen=True)
class ObjectSpec:
    """half_m: half extents; of a cylinder (axis z) radius, radius, half height.

    colour: of the body; label, accent: the colours of the label that is printed on it.
    pourable: it has a mouth in the middle of its top.
    """

    shape: Literal["box", "cylinder"]
    half_m: tuple[float, float, float]
    colour: RGB
    label: RGB
    accent: RGB
    pourable: bool = False

    @property
    def half_height_m(self) -> float:
        return self.half_m[2]


OBJECTS: dict[str, ObjectSpec] = {
    "cookies": ObjectSpec("box", (0.024, 0.034, 0.022), (0.16, 0.29, 0.72), (0.93, 0.82, 0.60), (0.45, 0.26, 0.12)),
    "butter": ObjectSpec("box", (0.020, 0.036, 0.017), (0.96, 0.84, 0.25), (0.98, 0.97, 0.92), (0.85, 0.20, 0.16)),
    "popcorn": ObjectSpec("box", (0.023, 0.030, 0.032), (0.86, 0.12, 0.14), (0.97, 0.95, 0.90), (0.97, 0.80, 0.25)),
    "cream_cheese": ObjectSpec("box", (0.021, 0.032, 0.020), (0.88, 0.93, 0.97), (0.30, 0.62, 0.85), (0.20, 0.50, 0.30)),
    "chocolate_pudding": ObjectSpec("box", (0.022, 0.028, 0.020), (0.30, 0.16, 0.09), (0.93, 0.86, 0.75), (0.68, 0.12, 0.42)),
    "tomato_sauce": ObjectSpec("cylinder", (0.025, 0.025, 0.045), (0.80, 0.10, 0.08), (0.95, 0.90, 0.80), (0.15, 0.50, 0.20), True),
    "milk": ObjectSpec("box", (0.024, 0.024, 0.050), (0.96, 0.97, 0.98), (0.20, 0.45, 0.85), (0.40, 0.72, 0.35), True),
    "orange_juice": ObjectSpec("box", (0.024, 0.024, 0.050), (0.97, 0.55, 0.08), (0.99, 0.95, 0.85), (0.25, 0.60, 0.20), True),
    "wine_bottle": ObjectSpec("cylinder", (0.022, 0.022, 0.060), (0.12, 0.26, 0.14), (0.93, 0.90, 0.80), (0.45, 0.07, 0.16), True),
}

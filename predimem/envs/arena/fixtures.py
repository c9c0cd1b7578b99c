"""The furniture: where it stands, how big it is, and which places in it an object can be put into.

Metres and radians, in the world frame: the table top is z = 0, the robot's base is at `ROBOT_BASE_M`
and faces +x. Furniture that opens faces the robot (-x).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

ROBOT_BASE_M = (-0.615, 0.0, 0.0)
REST_QPOS_RAD = (0.0, 0.3927, 0.0, -1.9635, 0.0, 2.3562, 0.7854)

SPAWN_LOW_M, SPAWN_HIGH_M = (-0.30, -0.12), (-0.08, 0.12)  # x, y of objects that start on the table
SPAWN_SPACING_M = 0.14  # the open gripper is 21 cm wide: it comes down on one without touching another

Kind = Literal["cabinet", "microwave", "basket", "drainer", "plate", "frying_pan", "mug", "shelf"]


@dataclass(frozen=True)
class FixtureSpec:
    """A fixture and where it stands.

    kind: what is built.
    position_m: its mean place.
    jitter_m: half the side of the square that its place is drawn from.
    """

    kind: Kind
    position_m: tuple[float, float]
    jitter_m: float = 0.02


FIXTURES: dict[str, FixtureSpec] = {
    "cabinet": FixtureSpec("cabinet", (0.16, 0.33)),
    "microwave": FixtureSpec("microwave", (0.05, -0.35)),
    "basket_left": FixtureSpec("basket", (-0.40, 0.36)),
    "basket_right": FixtureSpec("basket", (-0.40, -0.36)),
    "drainer": FixtureSpec("drainer", (-0.40, 0.36)),
    "frying_pan": FixtureSpec("frying_pan", (-0.36, -0.32)),
    "mug_red": FixtureSpec("mug", (-0.40, -0.30)),
    "mug_white": FixtureSpec("mug", (-0.24, -0.30)),
    "plate_left": FixtureSpec("plate", (-0.38, 0.33)),
    "plate_right": FixtureSpec("plate", (-0.38, -0.33)),
    "shelf_left": FixtureSpec("shelf", (-0.34, 0.34)),
    "shelf_right": FixtureSpec("shelf", (-0.34, -0.34)),
}
KITCHEN = ("cabinet", "microwave")  # stands in every scene

DRAWERS = ("top_drawer", "middle_drawer", "bottom_drawer")
DOOR = "microwave"
JOINTS = (*DRAWERS, DOOR)  # how far each is open: m for drawers, rad for the door


@dataclass(frozen=True)
class CabinetSize:
    """A wooden cabinet with three drawers; origin: middle of the lower edge of its face, +x inwards."""

    width_m: float = 0.26
    depth_m: float = 0.28
    drawer_height_m: float = 0.095
    plinth_m: float = 0.02
    wall_m: float = 0.008
    travel_m: float = 0.20
    handle_radius_m: float = 0.008
    handle_length_m: float = 0.05  # vertical: the arm's wrist cannot grasp a horizontal bar down here
    handle_offset_m: float = 0.03
    friction: float = 0.5
    damping: float = 10.0

    @property
    def face_thickness_m(self) -> float:
        return 0.012

    def drawer_floor_m(self, drawer: str) -> float:
        """Height of the drawer's frame above the table."""
        index = 2 - DRAWERS.index(drawer)  # counted from the bottom
        return self.plinth_m + self.wall_m + index * (self.drawer_height_m + self.wall_m)

    @property
    def handle_in_drawer_m(self) -> tuple[float, float, float]:
        """The middle of the handle's bar in the frame of its drawer."""
        return (-self.face_thickness_m - self.handle_offset_m, 0.0, self.drawer_height_m / 2)


@dataclass(frozen=True)
class MicrowaveSize:
    """A microwave with its hinge on the robot's right; origin: middle of the lower edge of its face."""

    width_m: float = 0.32
    depth_m: float = 0.24
    height_m: float = 0.22
    plinth_m: float = 0.02
    wall_m: float = 0.01
    door_m: float = 0.02
    handle_radius_m: float = 0.008
    handle_length_m: float = 0.10
    handle_offset_m: float = 0.045
    handle_inset_m: float = 0.03  # from the free edge
    friction: float = 0.05
    damping: float = 0.5
    limit_rad: float = 1.75

    @property
    def hinge_m(self) -> tuple[float, float, float]:
        """The foot of the hinge in the microwave's frame."""
        return (0.0, -self.width_m / 2, self.plinth_m)

    @property
    def handle_in_door_m(self) -> tuple[float, float, float]:
        """The middle of the handle's bar in the frame of the door, whose origin is the hinge."""
        x = -self.door_m - self.handle_offset_m
        return (x, self.width_m - self.handle_inset_m, self.height_m / 2)


CABINET = CabinetSize()
MICROWAVE = MicrowaveSize()
BASKET_HALF_M, BASKET_HEIGHT_M, BASKET_WALL_M = 0.12, 0.06, 0.006
PLATE_RADIUS_M, PLATE_THICKNESS_M = 0.08, 0.008
PAN_RADIUS_M, PAN_HEIGHT_M = 0.09, 0.03
MUG_RADIUS_M, MUG_HEIGHT_M = 0.035, 0.08
SHELF_HALF_M, SHELF_HEIGHT_M, SHELF_FLOOR_M = (0.08, 0.17), 0.16, 0.02
DRAINER_HALF_M, DRAINER_HEIGHT_M, DRAINER_FLOOR_M = (0.10, 0.10), 0.05, 0.012


@dataclass(frozen=True)
class Place:
    """A place that an object can be in, in the frame `frame` (a key of `World.position_m`).

    centre_m, half_m: the middle of the floor and half its extents in x and y (round: radius, radius).
    An object is inside when its centre is over that floor and its lowest point at most `clearance_m`
    above it. slots_m: where (x, y from the centre) objects go, in the order in which they are filled.
    """

    frame: str
    centre_m: tuple[float, float, float]
    half_m: tuple[float, float]
    clearance_m: float
    slots_m: tuple[tuple[float, float], ...] = ((0.0, 0.0),)
    round: bool = False


def _drawer(name: str, side: int = 0) -> Place:
    """side: 1 the robot's left half of the drawer, -1 the right half, 0 all of it."""
    wall = 0.006
    depth = CABINET.depth_m - CABINET.wall_m - 0.01
    half = (depth / 2, CABINET.width_m / 2 - CABINET.wall_m - 0.004 - wall)
    slot_x = 0.055 - depth / 2  # close behind the front: the drawer above hangs over the rest
    if side == 0:
        return Place(name, (depth / 2, 0.0, 0.009), half, 0.05, ((slot_x, 0.05), (slot_x, -0.05)))
    centre, half = (depth / 2, side * half[1] / 2, 0.009), (half[0], half[1] / 2)
    return Place(name, centre, half, 0.05, ((slot_x, -side * 0.008),))


def _microwave(side: int) -> Place:
    """side: 1 the robot's left half of the inside, -1 the right half, 0 all of it."""
    inner = MICROWAVE.width_m / 2 - MICROWAVE.wall_m
    floor = MICROWAVE.plinth_m + MICROWAVE.wall_m
    centre = (MICROWAVE.depth_m / 2, side * inner / 2, floor)
    half = ((MICROWAVE.depth_m - MICROWAVE.wall_m) / 2, inner if side == 0 else inner / 2)
    return Place("microwave", centre, half, 0.08, ((-0.01, -side * 0.03), (-0.078, -side * 0.03)))


def _shelf(name: str) -> Place:
    half = (SHELF_HALF_M[0] - 0.01, SHELF_HALF_M[1] - 0.01)
    return Place(name, (0.0, 0.0, SHELF_FLOOR_M), half, 0.03, ((0.0, 0.095), (0.0, 0.0), (0.0, -0.095)))


PLACES: dict[str, Place] = {
    "table": Place("table", (-0.1, 0.0, 0.0), (0.45, 0.60), 0.004),  # lower than any plate's or pan's floor
    **{
        name: Place(name, (0.0, 0.0, BASKET_WALL_M), (0.11, 0.11), 0.06, ((0.0, 0.055), (0.0, -0.055)))
        for name in ("basket_left", "basket_right")
    },
    "drainer": Place("drainer", (0.0, 0.0, DRAINER_FLOOR_M), (0.085, 0.085), 0.03),
    "frying_pan": Place("frying_pan", (0.0, 0.0, 0.006), (0.075, 0.075), 0.03, round=True),
    **{name: _shelf(name) for name in ("shelf_left", "shelf_right")},
    **{
        name: Place(name, (0.0, 0.0, PLATE_THICKNESS_M), (0.075, 0.075), 0.02, ((0.0, 0.044), (0.0, -0.044)), True)
        for name in ("plate_left", "plate_right")
    },
    **{name: _drawer(name) for name in DRAWERS},
    **{f"{name}_left": _drawer(name, 1) for name in DRAWERS},
    **{f"{name}_right": _drawer(name, -1) for name in DRAWERS},
    "microwave": _microwave(0),
    "microwave_left": _microwave(1),
    "microwave_right": _microwave(-1),
}

MAT_RADIUS_M = 0.05
BASKET_MAT_RADIUS_M = 0.03  # small enough to be covered by the first object


def mat_offset_m(place: str) -> tuple[float, float]:
    """Where a place's mat lies, from the middle of its floor: before the first slot, or under it."""
    return (0.0, PLACES[place].slots_m[0][1])


# A pour counts while the bottle's mouth is within this distance of the target's axis.
POUR_RADIUS_M: dict[str, float] = {"cookies": 0.05, "frying_pan": 0.08, "mug_red": 0.04, "mug_white": 0.04}
POUR_TOP_M: dict[str, float] = {
    "cookies": 0.022,
    "frying_pan": PAN_HEIGHT_M,
    "mug_red": MUG_HEIGHT_M,
    "mug_white": MUG_HEIGHT_M,
}

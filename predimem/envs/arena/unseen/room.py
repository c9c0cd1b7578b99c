"""Where on the table there is room outside the area that objects start in during training."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from predimem.envs.arena import fixtures as f
from predimem.envs.arena.layout import Pose

CLEAR_M = 0.06  # from an object's centre to a fixture and to whatever opens
NEAREST_M = 0.29  # to the robot's base: closer by, its wrist does not get down to the table
DOOR_SWEEP_M = 0.40  # of the microwave's door and its handle, about the hinge
DRAWER_SWEEP_M = f.CABINET.travel_m + f.CABINET.face_thickness_m + f.CABINET.handle_offset_m
TRIES = 20_000
PAN_HANDLE_M = 0.135  # its end, from the rim

Box = tuple[float, float, float, float]  # x low, x high, y low, y high


def outside_m(point: np.ndarray) -> float:
    """How far a point [2] is from the rectangle in which objects start in training; 0 within it."""
    (x0, y0), (x1, y1) = f.SPAWN_LOW_M, f.SPAWN_HIGH_M
    return distance_m((x0, x1, y0, y1), point)


def distance_m(box: Box, point: np.ndarray) -> float:
    """From a point [2] to a box; 0 within it."""
    x, y = float(point[0]), float(point[1])
    return math.hypot(max(box[0] - x, x - box[1], 0.0), max(box[2] - y, y - box[3], 0.0))


def free_points(
    count: int,
    outside: tuple[float, float],
    spacing_m: float,
    fixtures: Mapping[str, Pose],
    taken: Sequence[np.ndarray],
    rng: np.random.Generator,
) -> list[np.ndarray]:
    """`count` points [2] that keep `spacing_m` from each other and from `taken`, and are clear of the fixtures.

    outside: how far (at least, at most) they are from the rectangle of the training. Raises ValueError where there is
    no room for them, which no task of the arena has shown.
    """
    low, high = np.subtract(f.SPAWN_LOW_M, outside[1]), np.add(f.SPAWN_HIGH_M, outside[1])
    points: list[np.ndarray] = []
    for _ in range(TRIES):
        if len(points) == count:
            return points
        point = rng.uniform(low, high)
        apart = all(np.linalg.norm(point - other) >= spacing_m for other in (*taken, *points))
        if apart and outside[0] <= outside_m(point) <= outside[1] and is_clear(point, fixtures):
            points.append(point)
        elif rng.random() < 0.005:
            points = []  # begun afresh, as these may leave no room for the others
    raise ValueError(
        f"there is no room for {count} things {outside[0]} to {outside[1]} m outside the area of the training, "
        f"{spacing_m} m apart: leave out an object or a fixture of the task, or play it in another condition"
    )


def is_clear(point: np.ndarray, fixtures: Mapping[str, Pose], clear_m: float = CLEAR_M) -> bool:
    """Whether a point [2] is within reach, and so far from the fixtures and from whatever opens."""
    if np.linalg.norm(point - np.array(f.ROBOT_BASE_M[:2])) < NEAREST_M:
        return False
    for name, (position, _) in fixtures.items():
        at = point - position[:2]
        if distance_m(_footprint(f.FIXTURES[name].kind), at) < clear_m:
            return False
        if name == "microwave" and np.linalg.norm(at - f.MICROWAVE.hinge_m[:2]) < DOOR_SWEEP_M:
            return False
    return True


def _footprint(kind: f.Kind) -> Box:
    """The ground of a fixture, from its origin; of the cabinet with its drawers open."""
    if kind == "cabinet":
        return (-DRAWER_SWEEP_M, f.CABINET.depth_m, -f.CABINET.width_m / 2, f.CABINET.width_m / 2)
    if kind == "microwave":
        return (0.0, f.MICROWAVE.depth_m, -f.MICROWAVE.width_m / 2, f.MICROWAVE.width_m / 2)
    if kind == "frying_pan":
        return (-f.PAN_RADIUS_M - PAN_HANDLE_M, f.PAN_RADIUS_M, -f.PAN_RADIUS_M, f.PAN_RADIUS_M)
    if kind == "mug":  # its ear is on its left
        return (-f.MUG_RADIUS_M, f.MUG_RADIUS_M, -f.MUG_RADIUS_M, f.MUG_RADIUS_M + 0.036)
    (a, b) = {
        "basket": (f.BASKET_HALF_M, f.BASKET_HALF_M),
        "drainer": f.DRAINER_HALF_M,
        "plate": (f.PLATE_RADIUS_M, f.PLATE_RADIUS_M),
        "shelf": f.SHELF_HALF_M,
    }[kind]
    return (-a, a, -b, b)

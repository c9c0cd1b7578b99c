"""Where the furniture stands and how far it is open, from the points that a camera sees of it.

Its sizes are known (`predimem.envs.arena.fixtures`), and that it is not turned; its place is measured.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from datagen.perception.views import View
from predimem.envs.arena.fixtures import CABINET, DOOR, FIXTURES, MICROWAVE, PAN_RADIUS_M

BODIES = {"cabinet": "body", "microwave": "microwave_body"}  # what cameras call the part that does not move
RIM_M = 0.012  # the top of a thing: its points that are at most this much lower than the highest
OUTLIERS = 0.005
MIN_POINTS = 6
DOOR_STEP_RAD, DRAWER_STEP_M, ROOM_M = np.radians(0.25), 0.001, 0.003
PAN_RIM_M = 0.003  # how far the pan's rim stands out


class NotSeenError(RuntimeError):
    """A thing that has to be found is in no image, or hidden but for a few points."""


def points_of(views: Sequence[View], name: str) -> np.ndarray:
    """[P, 3] in the world: all points of a thing in all views."""
    return np.concatenate([view.world_m[view.mask(name)] for view in views])


def fixture_position_m(views: Sequence[View], name: str) -> np.ndarray:
    """[3]: the origin of a piece of furniture, on the table top. Raises NotSeenError."""
    points = points_of(views, BODIES.get(name, name))
    if len(points) < MIN_POINTS:
        raise NotSeenError(f"{name}: {len(points)} points in {', '.join(view.camera for view in views)}")
    kind = FIXTURES[name].kind
    if kind != "shelf":  # of which the back alone is high
        points = points[points[:, 2] > np.quantile(points[:, 2], 0.98) - RIM_M]
    low, high = np.quantile(points[:, :2], [OUTLIERS, 1 - OUTLIERS], axis=0)
    x, y = (low + high) / 2
    if kind in ("cabinet", "microwave"):  # the origin is in the face
        x = low[0]
    elif kind == "frying_pan":  # the handle is on the other side
        x = high[0] - PAN_RADIUS_M - PAN_RIM_M
    return np.array([x, y, 0.0])


def opening(views: Sequence[View], joint: str, origin_m: np.ndarray) -> float:
    """How far a drawer (m) or the door (rad) is open, of the furniture at `origin_m`. Raises NotSeenError."""
    points = points_of(views, "door" if joint == DOOR else joint)
    if len(points) < MIN_POINTS:
        raise NotSeenError(f"{joint}: {len(points)} points in {', '.join(view.camera for view in views)}")
    return _door_rad(points, origin_m) if joint == DOOR else _drawer_m(points, origin_m)


def _drawer_m(points: np.ndarray, origin_m: np.ndarray) -> float:
    """The opening at which most points lie in the drawer's front or handle, and fewest before them."""
    openings = np.arange(0.0, CABINET.travel_m + DRAWER_STEP_M, DRAWER_STEP_M)
    x, y, _ = (points - origin_m).T
    x = x + openings[:, None]  # [openings, P]: in the drawer's own frame
    front, handle = -CABINET.face_thickness_m, CABINET.handle_offset_m + CABINET.handle_radius_m
    in_front = (x > front - ROOM_M) & (x < ROOM_M)
    in_handle = (x > front - handle - ROOM_M) & (x <= front - ROOM_M) & (np.abs(y) < CABINET.handle_radius_m + ROOM_M)
    before = (x <= front - ROOM_M) & ~in_handle
    return _middle_of_best(openings, in_front.sum(axis=1) + in_handle.sum(axis=1) - 2 * before.sum(axis=1))


def _door_rad(points: np.ndarray, origin_m: np.ndarray) -> float:
    """The angle at which most points lie in the door's panel."""
    angles = np.arange(0.0, MICROWAVE.limit_rad + DOOR_STEP_RAD, DOOR_STEP_RAD)
    x, y = (points - origin_m - MICROWAVE.hinge_m)[:, :2].T
    cos, sin = np.cos(angles)[:, None], np.sin(angles)[:, None]
    depth, along = cos * x + sin * y, cos * y - sin * x  # [angles, P]: in the door's own frame
    inside = (depth > -MICROWAVE.door_m - ROOM_M) & (depth < ROOM_M)
    inside &= (along > -ROOM_M) & (along < MICROWAVE.width_m + ROOM_M)
    return _middle_of_best(angles, inside.sum(axis=1))


def _middle_of_best(values: np.ndarray, votes: np.ndarray) -> float:
    return float(values[votes == votes.max()].mean())

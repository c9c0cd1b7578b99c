"""Grasps by geometry: two contacts that face each other, and a gripper that has room."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from datagen.grasp.gripper import HALF_ACROSS_M, HALF_ALONG_M, MAX_WIDTH_M, TIP_M, in_the_way
from datagen.grasp.surface import Surface, thinned, thinned_points
from datagen.grasp.types import Grasp, PointCloud

OTHERS_VOXEL_M = 0.005  # of what is around the target
PAD_HALF_M = 0.010  # half of a finger's pad, across the closing direction
CONTACT_M = 0.006  # surface this near to the outermost point between the fingers is touched
CONTACT_POINTS = 4  # so many have to be seen for the normal there to be believed
FACING = 0.25  # of a normal: cosine to the closing direction; other points are of the top
SEEN_M = 0.015  # a thing of which less height was seen may go down further
AROUND_M = 0.06  # then it stands as low as what is around it
TABLE_ROOM_M = 0.004  # between the ends of the fingers and what the thing stands on
STRAY_POINTS, STRAYED = 2, 0.6  # so many points in the way may be noise of the camera, but make a grasp worth less
EASY_WIDTH_M = 0.050  # wider things leave less room for errors on both sides
OFF_CENTRE_M = 0.02  # so far from the middle a grasp loses more than half its worth
SAME_M, SAME_RAD = 0.012, 0.3  # grasps this near to each other are one


@dataclass(frozen=True)
class AntipodalConfig:
    """What is tried: `directions` to close in times `offsets_m` from the middle times depths, straight down
    first, tilted by `tilts_rad` about the closing direction where no straight one scores `good_score`.

    max_width_m: of what is grasped; the gripper opens to 8 cm. depth_m: from the top down to the TCP; half
    the height of low things. friction: of the contacts, tan of the half angle of their cones. room_m:
    between the open gripper and anything.
    """

    voxel_m: float = 0.003
    normals_m: float = 0.012
    directions: int = 40
    offsets_m: tuple[float, ...] = (0.0, 0.01, -0.01)
    depths: tuple[float, ...] = (1.0, 1.25, 0.75, 0.5)
    tilts_rad: tuple[float, ...] = (0.25, -0.25)
    good_score: float = 0.4
    max_width_m: float = 0.072
    depth_m: float = 0.025
    friction: float = 0.5
    room_m: float = 0.003
    max_grasps: int = 20

    def __post_init__(self) -> None:
        if not 0 < self.max_width_m <= MAX_WIDTH_M:
            raise ValueError(f"max_width_m is more than 0 and at most {MAX_WIDTH_M}, not {self.max_width_m}")
        for name in ("voxel_m", "normals_m", "directions", "depth_m", "friction", "max_grasps"):
            if getattr(self, name) <= 0:
                raise ValueError(f"{name} has to be more than 0, not {getattr(self, name)}")
        if not self.offsets_m or not self.depths:
            raise ValueError("offsets_m and depths need one value or more: 0.0 and 1.0 are the plain ones")


@dataclass(frozen=True, eq=False)
class _Scene:
    """The target and what is around it [N, 3], in a frame whose z is up. bottom_m: what the target stands on."""

    target: Surface
    others_m: np.ndarray
    bottom_m: float


@dataclass(frozen=True, eq=False)
class _Slice:
    """What the gripper meets that closes in one plane: points in the frame of a grasp (approach, closing direction,
    across), though not from its TCP. between, normals: of the target, where the pads are wide enough to touch it."""

    rotation: np.ndarray
    across_m: float
    between: np.ndarray
    normals: np.ndarray
    target: np.ndarray
    others: np.ndarray


class AntipodalDetector:
    """Deterministic: the same cloud gives the same grasps.

    A thing is seen from some sides only. How far it reaches is taken from all that was seen of it, top
    included; the normal at a contact from the surface there or, where that was not seen, from the outline.
    """

    def __init__(self, config: AntipodalConfig | None = None):
        self._config = config or AntipodalConfig()

    def detect(self, cloud: PointCloud) -> list[Grasp]:
        upright = _upright(cloud.up)
        scene = self._scene(cloud, upright)
        grasps = list(self._grasps(scene, (0.0,)))
        if not any(grasp.score >= self._config.good_score for grasp in grasps):
            grasps += self._grasps(scene, self._config.tilts_rad)
        grasps.sort(key=lambda grasp: -grasp.score)
        return [
            replace(grasp, translation_m=upright.T @ grasp.translation_m, rotation=upright.T @ grasp.rotation)
            for grasp in _distinct(grasps, self._config.max_grasps)
        ]

    def _scene(self, cloud: PointCloud, upright: np.ndarray) -> _Scene:
        config = self._config
        points = cloud.points_m @ upright.T
        seen_from = cloud.viewpoints_m[cloud.target] @ upright.T
        target = thinned(points[cloud.target], config.voxel_m, seen_from, config.normals_m)
        low, high = target.points_m.min(axis=0), target.points_m.max(axis=0)
        middle, half = (low + high) / 2, (high - low) / 2
        others = points[~cloud.target]
        others = others[(np.abs(others - middle)[:, :2] < half[:2] + HALF_ALONG_M).all(axis=1)]
        others = thinned_points(others, OTHERS_VOXEL_M)
        bottom = float(low[2])
        if high[2] - bottom < SEEN_M:
            around = (np.abs(others - middle)[:, :2] < half[:2] + AROUND_M).all(axis=1) & (others[:, 2] < high[2])
            bottom = float(np.quantile(others[around, 2], 0.05)) if around.any() else bottom
        return _Scene(target, others, bottom)

    def _grasps(self, scene: _Scene, tilts: tuple[float, ...]) -> Iterator[Grasp]:
        config = self._config
        closings = np.pi * np.arange(config.directions) / config.directions
        for closing, tilt in itertools.product(closings, tilts):
            rotation = _rotation(closing, tilt)
            target, others = scene.target.points_m @ rotation, scene.others_m @ rotation
            normals = scene.target.normals @ rotation
            middle = (target.min(axis=0) + target.max(axis=0)) / 2
            for offset in config.offsets_m:
                across = float(middle[2]) + offset
                between = np.abs(target[:, 2] - across) < PAD_HALF_M
                if between.sum() < CONTACT_POINTS:
                    continue
                near = others[np.abs(others[:, 2] - across) < HALF_ACROSS_M + config.room_m]
                cut = _Slice(rotation, across, target[between], normals[between], target, near)
                best = self._deepest(scene, cut)
                if best is not None:
                    off_m = math.hypot(offset, float(best.translation_m @ rotation[:, 1] - middle[1]))
                    worth = math.cos(tilt) ** 2 * math.exp(-((off_m / OFF_CENTRE_M) ** 2))
                    yield replace(best, score=best.score * worth)

    def _deepest(self, scene: _Scene, cut: _Slice) -> Grasp | None:
        """At the first of the depths that is good, or else the best one; None if the thing is not held at any."""
        best = None
        for share in self._config.depths:
            grasp = self._grasp(scene, cut, share)
            if grasp is not None and (best is None or grasp.score > best.score):
                best = grasp
            if best is not None and best.score >= self._config.good_score:
                break
        return best

    def _grasp(self, scene: _Scene, cut: _Slice, share: float) -> Grasp | None:
        config = self._config
        along, closing = cut.between[:, 0], cut.between[:, 1]
        top = int(along.argmin())
        height = float(cut.rotation[2] @ cut.between[top]) - scene.bottom_m
        wanted = min(config.depth_m, height / 2)
        depth = min(share * wanted, height - TIP_M - TABLE_ROOM_M)
        if depth <= 0:
            return None
        tcp_along = float(along[top]) + depth
        reached = along < tcp_along + TIP_M
        low, high = float(closing[reached].min()), float(closing[reached].max())
        width = high - low
        if not 0 < width <= config.max_width_m:
            return None
        padded = reached & (along > tcp_along)  # what is higher, like the slope of a roof, ends before the pads do
        tcp = np.array([tcp_along, (low + high) / 2, cut.across_m])
        closed = 1.0
        for side, end in ((-1.0, low), (1.0, high)):
            touched = padded & (np.abs(closing - end) < CONTACT_M)
            closed = min(closed, self._squareness(scene, cut, touched, [tcp_along, end, cut.across_m], side))
            if closed <= 0:
                return None
        hit = in_the_way(cut.others - tcp, config.room_m) + in_the_way(cut.target - tcp, 0.0)
        if hit > STRAY_POINTS:
            return None
        easy = min(1.0, (MAX_WIDTH_M - width) / (MAX_WIDTH_M - EASY_WIDTH_M))
        clear = STRAYED if hit else 1.0
        return Grasp(cut.rotation @ tcp, cut.rotation, width, depth, closed * easy * clear * min(1.0, depth / wanted))

    def _squareness(self, scene: _Scene, cut: _Slice, touched: np.ndarray, contact: list[float], side: float) -> float:
        """1 where a finger meets the surface squarely, 0 at the edge of the contact's friction cone and outside.

        touched: which of `cut.between` it meets, if that was seen. side: -1 or 1, of the closing direction.
        """
        normals = cut.normals[touched]
        normals = normals[side * normals[:, 1] > FACING]
        if len(normals) >= CONTACT_POINTS:
            normal = normals.mean(axis=0)
        else:
            normal = scene.target.outline_normal((cut.rotation @ contact)[:2]) @ cut.rotation[:2]
        angle = math.acos(max(-1.0, min(1.0, side * float(normal[1]) / max(math.hypot(*normal), 1e-9))))
        return max(0.0, 1.0 - (angle / math.atan(self._config.friction)) ** 2)


def _upright(up: np.ndarray) -> np.ndarray:
    """[3, 3]: from the camera's frame into one with the same origin whose z is up."""
    sideways = np.cross(up, np.eye(3)[int(np.abs(up).argmin())])
    x = sideways / np.linalg.norm(sideways)
    return np.stack([x, np.cross(up, x), up])


def _rotation(closing_rad: float, tilt_rad: float) -> np.ndarray:
    """[3, 3], as of a `Grasp`: down, tilted about the horizontal direction of closing."""
    y = np.array([math.cos(closing_rad), math.sin(closing_rad), 0.0])
    across = np.array([-y[1], y[0], 0.0])
    x = np.array([0.0, 0.0, -math.cos(tilt_rad)]) + math.sin(tilt_rad) * across
    return np.stack([x, y, np.cross(x, y)], axis=1)


def _distinct(grasps: list[Grasp], at_most: int) -> list[Grasp]:
    """The best grasps, without those that are nearly the same as a better one."""
    kept: list[Grasp] = []
    for grasp in grasps:
        if not any(_same(grasp, other) for other in kept):
            kept.append(grasp)
        if len(kept) == at_most:
            break
    return kept


def _same(one: Grasp, other: Grasp) -> bool:
    if np.linalg.norm(one.translation_m - other.translation_m) > SAME_M:
        return False
    facing = abs(float(one.rotation[:, 1] @ other.rotation[:, 1]))  # the fingers may be swapped
    return facing > math.cos(SAME_RAD) and float(one.rotation[:, 0] @ other.rotation[:, 0]) > math.cos(SAME_RAD)

"""Triangle meshes of boxes, turned shapes and rods: what is seen of furniture and objects. Metres.

Equal arguments give the same `Mesh`, which nobody changes: it is computed once per process.
"""

from __future__ import annotations

import functools
import itertools
import math
from dataclasses import dataclass

import numpy as np

Point = tuple[float, float, float]


@dataclass(frozen=True, eq=False)
class Mesh:
    """vertices, normals: float32 [V, 3]; uvs: float32 [V, 2], v = 1 is the upper edge of an image;
    triangles: uint32 [F, 3], counter-clockwise seen from outside.
    """

    vertices: np.ndarray
    triangles: np.ndarray
    normals: np.ndarray
    uvs: np.ndarray


def merge(meshes: tuple[Mesh, ...]) -> Mesh:
    starts = np.cumsum([0, *(len(mesh.vertices) for mesh in meshes[:-1])])
    return _mesh(
        np.concatenate([mesh.vertices for mesh in meshes]),
        np.concatenate([mesh.triangles + np.uint32(start) for mesh, start in zip(meshes, starts, strict=True)]),
        np.concatenate([mesh.normals for mesh in meshes]),
        np.concatenate([mesh.uvs for mesh in meshes]),
    )


# Each face of a box: its normal, and the directions in which its image runs to the right and up.
_FACES: tuple[tuple[Point, Point, Point], ...] = (
    ((-1, 0, 0), (0, -1, 0), (0, 0, 1)),
    ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    ((0, -1, 0), (1, 0, 0), (0, 0, 1)),
    ((0, 1, 0), (-1, 0, 0), (0, 0, 1)),
    ((0, 0, 1), (0, -1, 0), (1, 0, 0)),
    ((0, 0, -1), (0, 1, 0), (1, 0, 0)),
)


@functools.cache
def box(half_m: Point, centre_m: Point = (0, 0, 0), yaw_rad: float = 0.0, image_m: float = 0.0) -> Mesh:
    """image_m: the side of one copy of the image, which is repeated; 0 fits one copy to each face."""
    corners, normals, uvs = [], [], []
    for normal, right, up in np.array(_FACES, np.float64):
        width, height = np.abs(right) @ half_m, np.abs(up) @ half_m
        for u, v in ((-1, -1), (1, -1), (1, 1), (-1, 1)):
            corners.append((normal + u * right + v * up) * half_m)
            normals.append(normal)
            copies = (2 * width / image_m, 2 * height / image_m) if image_m else (1.0, 1.0)
            uvs.append(((u + 1) / 2 * copies[0], (v + 1) / 2 * copies[1]))
    faces = np.concatenate([[[4 * k, 4 * k + 1, 4 * k + 2], [4 * k, 4 * k + 2, 4 * k + 3]] for k in range(6)])
    turn = _turn_z(yaw_rad)
    return _mesh(np.array(corners) @ turn.T + centre_m, faces, np.array(normals) @ turn.T, np.array(uvs))


@functools.cache
def turned(profile_m: tuple[tuple[float, float], ...], centre_m: Point = (0, 0, 0), sides: int = 20) -> Mesh:
    """The profile (radius, z), listed from the bottom outwards and up, turned about the z axis.

    Its edges stay sharp, its round is smooth. An image runs once around, and up with the z of the profile.
    """
    angles = np.linspace(0.0, 2 * np.pi, sides + 1)
    round_ = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    heights = [z for _, z in profile_m]
    low, span = min(heights), max(max(heights) - min(heights), 1e-9)
    pieces = []
    for (r0, z0), (r1, z1) in itertools.pairwise(profile_m):
        slope = np.array([z1 - z0, r0 - r1]) / math.hypot(z1 - z0, r1 - r0)
        normals = np.concatenate([round_ * slope[0], np.full((sides + 1, 1), slope[1])], axis=1)
        rings = [np.concatenate([round_ * r, np.full((sides + 1, 1), z)], axis=1) for r, z in ((r0, z0), (r1, z1))]
        uvs = [np.stack([angles / (2 * np.pi), np.full(sides + 1, (z - low) / span)], axis=1) for z in (z0, z1)]
        k, n = np.arange(sides), sides + 1
        faces = np.concatenate([np.stack([k, k + 1, k + n + 1], 1), np.stack([k, k + n + 1, k + n], 1)])
        pieces.append(_mesh(np.concatenate(rings) + centre_m, faces, np.tile(normals, (2, 1)), np.concatenate(uvs)))
    return merge(tuple(pieces))


def cylinder(radius_m: float, half_height_m: float, centre_m: Point = (0, 0, 0), sides: int = 20) -> Mesh:
    r, h = radius_m, half_height_m
    return turned(((0, -h), (r, -h), (r, h), (0, h)), centre_m, sides)


@functools.cache
def rod(points_m: tuple[Point, ...], radius_m: float, sides: int = 6) -> Mesh:
    """A round rod along points of one plane; its ends are open."""
    points = np.array(points_m, np.float64)
    along = np.gradient(points, axis=0)
    along /= np.linalg.norm(along, axis=1, keepdims=True)
    out_of_plane = np.linalg.svd(points - points.mean(axis=0))[2][2]
    side = np.cross(along, out_of_plane)
    side /= np.linalg.norm(side, axis=1, keepdims=True)
    other = np.cross(along, side)
    angles = np.linspace(0, 2 * np.pi, sides + 1)[:, None, None]
    normals = np.cos(angles) * side + np.sin(angles) * other  # [sides + 1, points, 3]
    n, count = len(points), sides + 1
    k, p = (grid.reshape(-1) for grid in np.meshgrid(np.arange(sides), np.arange(n - 1), indexing="ij"))
    a, b = k * n + p, (k + 1) * n + p
    faces = np.concatenate([np.stack([a, b + 1, a + 1], 1), np.stack([a, b, b + 1], 1)])
    vertices = (points + radius_m * normals).reshape(-1, 3)
    return _mesh(vertices, faces, normals.reshape(-1, 3), np.zeros((count * n, 2)))


@functools.cache
def wedge(half_m: Point, centre_m: Point = (0, 0, 0)) -> Mesh:
    """The gable roof of a carton: a ridge along y over a base of half_m (x, y), 2 half_m[2] high."""
    a, b, c = half_m
    pieces = []
    for side in (-1, 1):
        roof = np.array([[side * a, -b, -c], [side * a, b, -c], [0, b, c], [0, -b, c]])
        pieces.append(_flat(roof, np.array([2 * c * side, 0, a]) / math.hypot(2 * c, a)))
        gable = np.array([[-a, side * b, -c], [a, side * b, -c], [0, side * b, c]])
        pieces.append(_flat(gable, np.array([0, side, 0])))
    whole = merge(tuple(pieces))
    return _mesh(whole.vertices + centre_m, whole.triangles, whole.normals, whole.uvs)


def _flat(corners: np.ndarray, normal: np.ndarray) -> Mesh:
    """A convex polygon whose corners are listed in either sense."""
    if np.cross(corners[1] - corners[0], corners[2] - corners[1]) @ normal < 0:
        corners = corners[::-1]
    fan = np.array([[0, k, k + 1] for k in range(1, len(corners) - 1)])
    uvs = np.array([(0, 0), (1, 0), (1, 1), (0, 1)])[: len(corners)]
    return _mesh(corners, fan, np.tile(normal, (len(corners), 1)), uvs)


def _turn_z(yaw_rad: float) -> np.ndarray:
    c, s = math.cos(yaw_rad), math.sin(yaw_rad)
    return np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]])


def _mesh(vertices: np.ndarray, triangles: np.ndarray, normals: np.ndarray, uvs: np.ndarray) -> Mesh:
    corners = [array.astype(np.float32) for array in (vertices, normals, uvs)]
    made = Mesh(corners[0], triangles.astype(np.uint32), corners[1], corners[2])
    for array in vars(made).values():
        array.setflags(write=False)
    return made

"""Point clouds of made-up scenes: a thing on a table, seen by a camera that stands at `EYE_M`."""

from __future__ import annotations

import itertools

import numpy as np

from datagen.grasp.types import Grasp, PointCloud

EYE_M = np.array([-0.2, -0.8, 1.1])
STEP_M = 0.004  # between neighbouring points


def box(half_m: tuple[float, float, float], yaw_rad: float = 0.0, faces: str = "+z+x-x+y-y") -> np.ndarray:
    """[N, 6]: points and outward normals of an upright box that stands on z = 0 about the z axis."""
    parts = []
    for sign, axis in zip(faces[::2], faces[1::2], strict=True):
        normal = np.eye(3)["xyz".index(axis)] * (1.0 if sign == "+" else -1.0)
        others = [k for k in range(3) if k != "xyz".index(axis)]
        sides = [np.linspace(-half_m[k], half_m[k], max(2, int(2 * half_m[k] / STEP_M) + 1)) for k in others]
        grid = np.stack(np.meshgrid(*sides), axis=-1).reshape(-1, 2)
        points = np.tile(normal * half_m, (len(grid), 1))
        points[:, others] = grid
        parts.append(np.hstack([points, np.tile(normal, (len(grid), 1))]))
    return moved(np.concatenate(parts), (0.0, 0.0, half_m[2]), yaw_rad)


def turned(profile: list[tuple[float, float]]) -> np.ndarray:
    """[N, 6]: a solid of revolution about the z axis, from (radius, height) points, upwards."""
    parts = []
    for (r0, z0), (r1, z1) in itertools.pairwise(profile):
        length = float(np.hypot(r1 - r0, z1 - z0))
        slope = np.array([z1 - z0, r0 - r1]) / length  # outwards, up
        for share in np.linspace(0, 1, max(2, int(length / STEP_M))):
            r, z = r0 + share * (r1 - r0), z0 + share * (z1 - z0)
            angles = np.linspace(0, 2 * np.pi, max(1, int(2 * np.pi * r / STEP_M)), endpoint=False)
            ring = np.stack([np.cos(angles), np.sin(angles)], axis=1)
            heights, ups = np.full((len(ring), 1), z), np.full((len(ring), 1), slope[1])
            parts.append(np.hstack([r * ring, heights, slope[0] * ring, ups]))
    return np.concatenate(parts)


def moved(surface: np.ndarray, by_m: tuple[float, float, float], yaw_rad: float = 0.0) -> np.ndarray:
    cos, sin = np.cos(yaw_rad), np.sin(yaw_rad)
    turn = np.array([[cos, -sin, 0.0], [sin, cos, 0.0], [0.0, 0.0, 1.0]])
    return np.hstack([surface[:, :3] @ turn.T + by_m, surface[:, 3:] @ turn.T])


def table(half_m: float = 0.2) -> np.ndarray:
    side = np.arange(-half_m, half_m, 2 * STEP_M)
    x, y = (grid.ravel() for grid in np.meshgrid(side, side))
    return np.stack([x, y, 0 * x, 0 * x, 0 * x, 0 * x + 1], axis=1)


def camera(spin_rad: float = 0.0) -> np.ndarray:
    """[3, 3]: a camera at `EYE_M` that looks at the origin (OpenCV axes, in the world), rolled by an angle."""
    ahead = -EYE_M / np.linalg.norm(EYE_M)
    right = np.cross(ahead, [0.0, 0.0, 1.0])
    right /= np.linalg.norm(right)
    cos, sin = np.cos(spin_rad), np.sin(spin_rad)
    return np.stack([right, np.cross(ahead, right), ahead], axis=1) @ [[cos, -sin, 0], [sin, cos, 0], [0, 0, 1]]


def seen(target: np.ndarray, *others: np.ndarray, spin_rad: float = 0.0, everything: bool = False) -> PointCloud:
    """What faces the camera, or everything, as by cameras all around, in its frame. Nothing hides anything else."""
    surface = np.concatenate([target, *others])
    of_target = np.arange(len(surface)) < len(target)
    facing = np.einsum("nd,nd->n", EYE_M - surface[:, :3], surface[:, 3:]) > 0
    kept = facing | everything
    rotation = camera(spin_rad)
    n = int(kept.sum())
    return PointCloud(
        points_m=(surface[kept, :3] - EYE_M) @ rotation,
        colours=np.full((n, 3), 128, np.uint8),
        target=of_target[kept],
        up=rotation.T @ [0.0, 0.0, 1.0],
        viewpoints_m=(surface[kept].reshape(n, 2, 3).sum(axis=1) - EYE_M) @ rotation * everything,
    )


def in_world(grasp: Grasp, spin_rad: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    """(TCP [3], rotation [3, 3]) of a grasp in such a cloud."""
    rotation = camera(spin_rad)
    return rotation @ grasp.translation_m + EYE_M, rotation @ grasp.rotation

"""The upright box that an object's points fill: where an object is, how it is turned and how big it is."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

TURNS = 45  # directions tried, over a quarter turn
OUTLIERS = 0.02  # of the points at each end, which a depth camera puts between an edge and what is behind it
STRAY_POINTS = 2  # so many are forgiven above the top


@dataclass(frozen=True, eq=False)
class Box:
    """centre_m [3]; yaw_rad of its first horizontal axis; half_m [3] along its own axes, the last is upright."""

    centre_m: np.ndarray
    yaw_rad: float
    half_m: np.ndarray

    @property
    def rotation(self) -> np.ndarray:
        """[3, 3]"""
        cos, sin = np.cos(self.yaw_rad), np.sin(self.yaw_rad)
        return np.array([[cos, -sin, 0.0], [sin, cos, 0.0], [0.0, 0.0, 1.0]])


def upright_box(points_m: np.ndarray, floor_m: float | None = None) -> Box:
    """The box with the smallest footprint around points [P, 3], P >= 1.

    floor_m: the height that the object is known to stand on; else its lowest point is taken.
    """
    turns = np.arange(TURNS) * np.pi / 2 / TURNS
    axes = np.stack([np.cos(turns), np.sin(turns)], axis=1)
    along, across = points_m[:, :2] @ axes.T, points_m[:, :2] @ np.stack([-axes[:, 1], axes[:, 0]])
    low = np.stack([np.quantile(along, OUTLIERS, axis=0), np.quantile(across, OUTLIERS, axis=0)])
    high = np.stack([np.quantile(along, 1 - OUTLIERS, axis=0), np.quantile(across, 1 - OUTLIERS, axis=0)])
    best = int(np.argmin(np.prod(high - low, axis=0)))
    middle, half = (low + high)[:, best] / 2, (high - low)[:, best] / 2
    cos, sin = axes[best]
    bottom = float(points_m[:, 2].min()) if floor_m is None else floor_m
    top = max(float(np.sort(points_m[:, 2])[-1 - STRAY_POINTS :][0]), bottom)  # of a bottle's neck few are seen
    centre = np.array([cos * middle[0] - sin * middle[1], sin * middle[0] + cos * middle[1], (bottom + top) / 2])
    return Box(centre, float(turns[best]), np.array([*half, (top - bottom) / 2]))

"""The seen surface of a thing: its points with their normals, and its outline from above."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

NEIGHBOURS = 30  # points that a normal is made of, at most
OUTLINE_RAD = np.linspace(0.0, 2 * np.pi, 72, endpoint=False)
OUTWARDS = np.stack([np.cos(OUTLINE_RAD), np.sin(OUTLINE_RAD)])
OUTLINE_SLACK_M = 0.0015  # directions this near to the outermost one count, too


@dataclass(frozen=True, eq=False)
class Surface:
    """points_m, normals: [N, 3], the normals pointing outwards. reach_m: [72], how far the outline reaches
    from the origin in each direction of `OUTLINE_RAD` (its support function, so of its convex hull)."""

    points_m: np.ndarray
    normals: np.ndarray
    reach_m: np.ndarray

    def outline_normal(self, point_m: np.ndarray) -> np.ndarray:
        """[2]: the outward direction of the outline next to a point [2] on it, of any length."""
        slack = self.reach_m - point_m @ OUTWARDS
        return OUTWARDS @ (slack <= slack.min() + OUTLINE_SLACK_M)


def thinned(points_m: np.ndarray, voxel_m: float, viewpoints_m: np.ndarray, normals_m: float) -> Surface:
    """The surface of points [P, 3], one for each voxel, with normals from what is within `normals_m`.

    viewpoints_m: [P, 3], where each point was seen from: normals point there.
    """
    import open3d

    open3d.utility.set_verbosity_level(open3d.utility.VerbosityLevel.Error)
    cloud = open3d.geometry.PointCloud(open3d.utility.Vector3dVector(points_m))
    cloud.normals = open3d.utility.Vector3dVector(viewpoints_m - points_m)  # averaged in each voxel, as points are
    cloud = cloud.voxel_down_sample(voxel_m)
    towards = np.asarray(cloud.normals).copy()
    cloud.estimate_normals(open3d.geometry.KDTreeSearchParamHybrid(normals_m, NEIGHBOURS))
    points, normals = np.asarray(cloud.points), np.asarray(cloud.normals).copy()
    normals[np.einsum("nd,nd->n", normals, towards) < 0] *= -1
    return Surface(points, normals, (points[:, :2] @ OUTWARDS).max(axis=0))


def thinned_points(points_m: np.ndarray, voxel_m: float) -> np.ndarray:
    """[N, 3]: one point for each voxel."""
    _, first = np.unique(np.floor(points_m / voxel_m).astype(np.int64), axis=0, return_index=True)
    return points_m[first]

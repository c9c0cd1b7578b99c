"""From the views of cameras to the point cloud that grasps are looked for in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from datagen.grasp.types import PointCloud

if TYPE_CHECKING:
    from datagen.perception.views import View

AROUND_M = 0.40  # what is further from the target's middle is left out
ROBOT = "panda_"  # names of the robot's links begin with this
UP = np.array([0.0, 0.0, 1.0])


def point_cloud(
    views: Sequence[View], target: str, exclude: Sequence[str] = ()
) -> tuple[PointCloud, np.ndarray, np.ndarray]:
    """(cloud, rotation [3, 3], position_m [3]): the cloud is in the frame of the first view's camera, which is
    turned and placed so in the world: world = cloud.points_m @ rotation.T + position_m.

    views: may be of different times, if nothing but the robot has moved in between. exclude: names of
    further things whose points are left out, besides the robot's. Raises ValueError if no view shows the
    target.
    """
    if not views:
        raise ValueError("a point cloud needs one view or more")
    rotation, position = views[0].rotation, views[0].position_m
    points, colours, wanted, seen_from = [], [], [], []
    for view in views:
        robot = [label for label, name in view.names.items() if name.startswith(ROBOT) or name in exclude]
        kept = (view.depth_m > 0) & ~np.isin(view.labels, robot)
        points.append((view.world_m[kept] - position) @ rotation)
        colours.append(view.rgb[kept])
        wanted.append(view.mask(target)[kept])
        seen_from.append(np.tile((view.position_m - position) @ rotation, (int(kept.sum()), 1)))
    cloud, colour, of_target, viewpoints = map(np.concatenate, (points, colours, wanted, seen_from))
    if not of_target.any():
        raise ValueError(f"{target!r} is in none of the views ({', '.join(view.camera for view in views)})")
    near = np.linalg.norm(cloud - cloud[of_target].mean(axis=0), axis=1) < AROUND_M
    made = PointCloud(cloud[near], colour[near], of_target[near], rotation.T @ UP, viewpoints[near])
    return made, rotation, position

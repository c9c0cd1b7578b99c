"""What grasp detectors take and give."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np


@dataclass(frozen=True, eq=False)
class PointCloud:
    """What cameras saw of a thing and of what is around it, P points in one camera's frame (OpenCV: x right,
    y down, z ahead).

    points_m: [P, 3]. colours: uint8 [P, 3]. target: bool [P], the points of the thing to grasp. up: [3], the
    unit vector against gravity. viewpoints_m: [P, 3], where the camera stood that saw each point (several
    cameras may have been merged). Raises ValueError where shapes do not fit, or no point is of the target.
    """

    points_m: np.ndarray
    colours: np.ndarray
    target: np.ndarray
    up: np.ndarray
    viewpoints_m: np.ndarray

    def __post_init__(self) -> None:
        n = len(self.points_m)
        wanted = {"points_m": (n, 3), "colours": (n, 3), "target": (n,), "up": (3,), "viewpoints_m": (n, 3)}
        for name, shape in wanted.items():
            value = getattr(self, name)
            if value.shape != shape:
                raise ValueError(
                    f"{name} of a cloud of {n} points has the shape {list(shape)}, not {list(value.shape)}"
                )
        if self.target.dtype != bool:
            raise ValueError(
                f"target says of each point whether it is the thing to grasp: bool, not {self.target.dtype}"
            )
        if not np.isfinite(self.points_m).all():
            raise ValueError("points_m has points that are not finite: leave out pixels without depth")
        if abs(float(np.linalg.norm(self.up)) - 1.0) > 1e-3:
            raise ValueError(f"up is a unit vector against gravity in the camera's frame, not {self.up.tolist()}")
        if not self.target.any():
            raise ValueError("no point is of the target: look from where a camera sees it, or ask for another thing")


@dataclass(frozen=True, eq=False)
class Grasp:
    """A way to hold a thing, in the frame of the cloud.

    translation_m: [3], the point between the pads of the fingers (TCP); it is `TIP_M` (see `gripper`) before
    the ends of the fingers. rotation: [3, 3], columns as in GraspNet: x the approach, y the direction in
    which the fingers close, z = x cross y. width_m: of what is between the fingers. depth_m: from where the
    gripper meets the thing to the TCP, along x. score: in [0, 1].

    GraspNet and AnyGrasp give the place where the gripper meets the thing, which is translation_m - depth_m * x,
    and a depth that goes on to the ends of the fingers: depth_m + TIP_M. Half a turn about x swaps the
    fingers: the same grasp, of which the arm takes the one that is easier to reach.
    """

    translation_m: np.ndarray
    rotation: np.ndarray
    width_m: float
    depth_m: float
    score: float


class GraspDetector(Protocol):
    def detect(self, cloud: PointCloud) -> list[Grasp]:
        """The grasps of the target, best first; none where it cannot be grasped."""
        ...

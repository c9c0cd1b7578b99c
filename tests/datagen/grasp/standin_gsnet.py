"""A stand-in for AnyGrasp's library `gsnet`, which is a licensed binary: its documented interfaces, old and new, and
what they promise of types and frames. It finds nothing: it answers with four grasps, of which one is wanted.

The tests copy it as `gsnet.py` into a folder with `license/`, which it looks for where it runs, as the SDK does.
"""

from __future__ import annotations

import os
from types import SimpleNamespace
from typing import Any

import numpy as np

DEPTH_M = 0.03
seen: dict[str, Any] = {}  # the last arguments


class GraspGroup:
    """Of graspnetAPI, what is used of it."""

    def __init__(self, grasps: list[SimpleNamespace]):
        self._grasps = grasps

    def __len__(self) -> int:
        return len(self._grasps)

    def __getitem__(self, index: int) -> SimpleNamespace:
        return self._grasps[index]

    def nms(self) -> GraspGroup:
        return GraspGroup(list(self._grasps))

    def sort_by_score(self) -> GraspGroup:
        return GraspGroup(sorted(self._grasps, key=lambda grasp: -grasp.score))


def _grasp(at_m: np.ndarray, approach: np.ndarray, score: float, width_m: float = 0.05) -> SimpleNamespace:
    y = np.cross(approach, np.eye(3)[int(np.abs(approach).argmin())])
    y /= np.linalg.norm(y)
    rotation = np.stack([approach, y, np.cross(approach, y)], axis=1)
    return SimpleNamespace(
        score=score, width=width_m, height=0.02, depth=DEPTH_M, rotation_matrix=rotation, translation=at_m, object_id=-1
    )


def _answer(points: np.ndarray, region: np.ndarray, approach: np.ndarray) -> GraspGroup | None:
    assert points.dtype == np.float32 and points.ndim == 2 and points.shape[1] == 3
    if len(points) < 50:
        return None
    target, rest = points[region].astype(float), points[~region].astype(float)
    top = target[(target @ approach).argmin()]
    away = rest[np.linalg.norm(rest - top, axis=1).argmax()]
    sideways = np.cross(approach, np.eye(3)[int(np.abs(approach).argmin())])
    return GraspGroup(
        [
            _grasp(top, approach, 0.4),
            _grasp(away, approach, 1.2),  # of something else
            _grasp(top, sideways / np.linalg.norm(sideways), 0.9),  # not from above
            _grasp(top, approach, 0.8, width_m=0.11),  # too wide
        ]
    )


class _Detector:
    """What `create_detector` makes: SDK of July 2026 and later."""

    def get_grasp(self, points: np.ndarray, optional_params: dict[str, Any]) -> GraspGroup | None:
        seen.update(optional_params)
        region = optional_params["region_steering"]
        assert region.dtype == bool and region.shape == (len(points),)
        return _answer(points, region, np.array(optional_params["approach_steering"], float))


def create_detector(config: Any) -> _Detector | None:
    assert os.path.isfile(config.checkpoint_path) and 0 < config.max_gripper_width <= 0.1 and config.gripper_height > 0
    return _Detector() if os.path.isdir("license") else None


class AnyGrasp:
    """The interface of the SDK before July 2026."""

    def __init__(self, cfgs: Any):
        if not os.path.isdir("license"):
            raise RuntimeError("license not found")
        self._top_down, self._loaded = cfgs.top_down_grasp, False

    def load_net(self) -> None:
        self._loaded = True

    def get_grasp(
        self,
        points: np.ndarray,
        colors: np.ndarray,
        lims: list[float],
        apply_object_mask: bool = True,
        dense_grasp: bool = False,
        collision_detection: bool = True,
    ) -> tuple[GraspGroup | None, None]:
        assert self._loaded
        assert colors.dtype == np.float32 and colors.shape == points.shape and colors.max() <= 1.0
        seen.update(lims=lims, apply_object_mask=apply_object_mask)
        low, high = np.array(lims[::2]), np.array(lims[1::2])
        region = ((points >= low - 1e-6) & (points <= high + 1e-6)).all(axis=1)
        return _answer(points, region, STRAIGHT_DOWN), None


STRAIGHT_DOWN = np.zeros(3)  # the tests say where that is in the camera's frame

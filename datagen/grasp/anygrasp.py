"""AnyGrasp, a learned detector (https://github.com/graspnet/anygrasp_sdk). Its library `gsnet` is a binary with a
licence for each machine; nothing of it is shipped here, and it is loaded only where it is chosen.

Written by the SDK's documentation, of both its interfaces: `gsnet.create_detector` (since July 2026) and
`gsnet.AnyGrasp` (before). The SDK itself was not run: the tests use a module of our own with these interfaces.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
from argparse import Namespace
from dataclasses import dataclass
from typing import Any

import numpy as np

from datagen.grasp.gripper import MAX_WIDTH_M, TIP_M
from datagen.grasp.types import Grasp, PointCloud
from predimem.core.faults import SetupError

MODULE = "gsnet"
BEHIND_M = 0.02  # a finger's length that counts as around the target, back from where the gripper meets it
HOW_TO_GET_IT = (
    "AnyGrasp's SDK is a binary with a licence for each machine: apply for it as "
    "https://github.com/graspnet/anygrasp_sdk says (license_registration/README.md), put gsnet*.so, license/ and the "
    "checkpoint into one folder, and name it as `sdk_dir`. Without it choose detector: antipodal"
)


class AnyGraspUnavailable(SetupError, RuntimeError):
    """The SDK, its licence or its checkpoint is missing."""


@dataclass(frozen=True)
class AnyGraspConfig:
    """Where the AnyGrasp SDK is, and how its grasps are chosen.

    sdk_dir: the folder with `gsnet*.so` and `license/`; empty where Python finds `gsnet` without. checkpoint: its
    weights, a path, or a name in sdk_dir. gripper_height_m: of the fingers, across the closing direction.
    approach_rad: the approach is within this angle of straight down. dense, collision_detection: the SDK's own.
    """

    sdk_dir: str = ""
    checkpoint: str = "log/checkpoint_detection.tar"
    max_width_m: float = MAX_WIDTH_M
    gripper_height_m: float = 0.02
    approach_rad: float = 0.6
    dense: bool = False
    collision_detection: bool = True


class AnyGraspDetector:
    """Finds grasps in a point cloud with the AnyGrasp SDK, which needs a licence and its checkpoint."""

    def __init__(self, config: AnyGraspConfig):
        """Loads the library and its weights. Raises AnyGraspUnavailable where that does not work."""
        self._config = config
        if config.sdk_dir and not os.path.isdir(config.sdk_dir):
            raise AnyGraspUnavailable(f"sdk_dir {config.sdk_dir!r} is no folder. {HOW_TO_GET_IT}")
        if config.sdk_dir and config.sdk_dir not in sys.path:
            sys.path.insert(0, os.path.abspath(config.sdk_dir))
        try:
            gsnet = importlib.import_module(MODULE)
        except ImportError as error:
            raise AnyGraspUnavailable(f"the library {MODULE} cannot be loaded ({error}). {HOW_TO_GET_IT}") from error
        with contextlib.chdir(config.sdk_dir or "."):  # the SDK looks for license/ where it runs
            checkpoint = os.path.abspath(config.checkpoint)
            if not os.path.isfile(checkpoint):
                raise AnyGraspUnavailable(f"the checkpoint {checkpoint} does not exist. {HOW_TO_GET_IT}")
            self._steers = hasattr(gsnet, "create_detector")
            try:
                self._sdk = self._load(gsnet, checkpoint)
            except Exception as error:
                raise AnyGraspUnavailable(f"AnyGrasp does not start ({error}). {HOW_TO_GET_IT}") from error
        if self._sdk is None:
            raise AnyGraspUnavailable(f"AnyGrasp has no valid licence for this machine. {HOW_TO_GET_IT}")

    def _load(self, gsnet: Any, checkpoint: str) -> Any:
        settings = Namespace(
            checkpoint_path=checkpoint,
            max_gripper_width=self._config.max_width_m,
            gripper_height=self._config.gripper_height_m,
            top_down_grasp=True,  # this and debug: of `gsnet.AnyGrasp` only
            debug=False,
        )
        if self._steers:
            return gsnet.create_detector(settings)
        sdk = gsnet.AnyGrasp(settings)
        sdk.load_net()
        return sdk

    def detect(self, cloud: PointCloud) -> list[Grasp]:
        found = self._found(cloud)
        if found is None or len(found) == 0:
            return []
        found = found.nms().sort_by_score()
        grasps = [_grasp(found[i]) for i in range(len(found))]
        steep = np.cos(self._config.approach_rad)
        return [
            grasp
            for grasp in grasps
            if grasp.width_m <= self._config.max_width_m
            and -grasp.rotation[:, 0] @ cloud.up >= steep
            and self._holds_target(cloud, grasp)
        ]

    def _found(self, cloud: PointCloud) -> Any:
        """The SDK's `GraspGroup`, or None."""
        config, points = self._config, cloud.points_m.astype(np.float32)
        if self._steers:
            wanted = {
                "dense_grasp": config.dense,
                "collision_detection": config.collision_detection,
                "region_steering": cloud.target,
                "approach_steering": (-cloud.up).tolist(),
                "approach_thresh": config.approach_rad,
            }
            return self._sdk.get_grasp(points, wanted)
        region = cloud.points_m[cloud.target]
        limits = np.stack([region.min(axis=0), region.max(axis=0)], axis=1).ravel().tolist()  # x, x, y, y, z, z
        grasps, _ = self._sdk.get_grasp(
            points,
            cloud.colours.astype(np.float32) / 255.0,
            lims=limits,
            apply_object_mask=True,
            dense_grasp=config.dense,
            collision_detection=config.collision_detection,
        )
        return grasps

    def _holds_target(self, cloud: PointCloud, grasp: Grasp) -> bool:
        """Whether most of what was seen between the fingers is the target."""
        at = (cloud.points_m - grasp.translation_m) @ grasp.rotation
        between = (
            (np.abs(at[:, 1]) <= grasp.width_m / 2)
            & (np.abs(at[:, 2]) <= self._config.gripper_height_m / 2)
            & (at[:, 0] >= -grasp.depth_m - BEHIND_M)
            & (at[:, 0] <= TIP_M)
        )
        return bool(between.any()) and bool(cloud.target[between].mean() > 0.5)


def _grasp(found: Any) -> Grasp:
    """From a grasp of GraspNet's interface, whose depth goes to the ends of the fingers."""
    rotation = np.asarray(found.rotation_matrix, float)
    depth = float(found.depth) - TIP_M
    translation = np.asarray(found.translation, float) + depth * rotation[:, 0]
    return Grasp(translation, rotation, float(found.width), depth, float(np.clip(found.score, 0.0, 1.0)))

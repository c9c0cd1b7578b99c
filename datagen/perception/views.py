"""What one camera saw: colours, depth and the masks of things, and the points that they make in space."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from predimem.envs.arena.scene.environment import DEPTH_CAMERAS


@dataclass(frozen=True, eq=False)
class View:
    """An RGB-D image with masks. Camera axes as in OpenCV: x right, y down, z ahead.

    rgb: uint8 [H, W, 3]. depth_m: float [H, W] along z, 0 where nothing is. labels: int [H, W], the
    thing that a pixel shows; names: what a label is called. intrinsics: [3, 3] in pixels.
    rotation [3, 3], position_m [3]: of the camera in the world.
    """

    camera: str
    rgb: np.ndarray
    depth_m: np.ndarray
    labels: np.ndarray
    names: Mapping[int, str]
    intrinsics: np.ndarray
    rotation: np.ndarray
    position_m: np.ndarray

    @cached_property
    def points_m(self) -> np.ndarray:
        """[H, W, 3] in the camera's frame; z is 0 where nothing is."""
        v, u = np.indices(self.depth_m.shape)
        k, z = self.intrinsics, self.depth_m
        return np.stack([(u + 0.5 - k[0, 2]) / k[0, 0] * z, (v + 0.5 - k[1, 2]) / k[1, 1] * z, z], axis=-1)

    @cached_property
    def world_m(self) -> np.ndarray:
        """[H, W, 3] in the world."""
        return self.points_m @ self.rotation.T + self.position_m

    def mask(self, name: str) -> np.ndarray:
        """bool [H, W]: where a thing is seen."""
        labels = [label for label, called in self.names.items() if called == name]
        return np.isin(self.labels, labels) & (self.depth_m > 0)


def look(env: Any, cameras: Sequence[str] = DEPTH_CAMERAS) -> list[View]:
    """An image by each camera of an `ArenaEnv` of one world that was made with `depth_px`.

    The masks are the renderer's own: they stand for a segmentation model that finds things by their names,
    which a real robot needs here. Depth is in whole millimetres, as depth cameras give it.
    """
    seen = env.observe("rgb+depth+segmentation", cameras)
    names = {label: thing.name for label, thing in env.segmentation_id_map.items()}
    views = []
    for camera in cameras:
        image = {key: value[0].cpu().numpy() for key, value in seen[camera].items()}
        lens = {key: value[0].cpu().numpy().astype(float) for key, value in env._sensors[camera].get_params().items()}
        extrinsic = lens["extrinsic_cv"]
        views.append(
            View(
                camera=camera,
                rgb=image["rgb"],
                depth_m=image["depth"][..., 0] / 1000.0,
                labels=image["segmentation"][..., 0],
                names=names,
                intrinsics=lens["intrinsic_cv"],
                rotation=extrinsic[:3, :3].T,
                position_m=-extrinsic[:3, :3].T @ extrinsic[:3, 3],
            )
        )
    return views

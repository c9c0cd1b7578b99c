"""An image by each camera, and what it shows: by the renderer's masks and the simulation's state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from datagen.experts.memoryless.hold import holding
from datagen.experts.scripted.door import OPENED_RAD
from datagen.experts.scripted.drawer import PULLED_M
from datagen.experts.scripted.snapshot import Gripper, Snapshot
from predimem.core.scene_facts import ELSEWHERE, IN_GRIPPER, SceneFacts
from predimem.envs.arena.fixtures import DOOR, JOINTS, KITCHEN, PLACES
from predimem.envs.arena.predicates import Inside

SEEN_PX = 4  # of an image of 128 px, fewer are not seen
SMALLEST_FIRST = sorted(PLACES, key=lambda name: PLACES[name].half_m[0] * PLACES[name].half_m[1])


@dataclass(frozen=True, eq=False)
class Shown:
    """images: camera -> uint8 [H, W, 3]; state: float32 [D]; pixels [O, C, 2], mat_pixels [C, 2]: see `SceneFacts`."""

    images: dict[str, np.ndarray]
    state: np.ndarray
    subtask: str
    places: tuple[str, ...]
    pixels: np.ndarray
    mat: str
    mat_pixels: np.ndarray
    held: str
    openings: np.ndarray


def show(env: Any, scene: Snapshot, gripper: Gripper, subtask: str) -> Shown:
    """What is to be seen in an `ArenaEnv` that was just set to `scene` and `gripper`."""
    seen = env.observe("rgb+segmentation")
    masks = [np.array(data["segmentation"][0, :, :, 0].cpu()) for data in seen.values()]
    ids = {thing.name: label for label, thing in env.segmentation_id_map.items()}
    held = next((o for o in scene.objects if holding(gripper, scene, o)), "")
    mat = next(iter(env.variant().mats), "")
    world, frames = env.world(), {"table", *KITCHEN, *JOINTS, *env.task.fixtures}
    known = [name for name in SMALLEST_FIRST if PLACES[name].frame in frames]

    def place(object: str) -> str:
        if object == held:
            return IN_GRIPPER
        return next((name for name in known if bool(Inside(object, name)(world)[0])), ELSEWHERE)

    return Shown(
        images={name: np.array(data["rgb"][0].cpu(), np.uint8) for name, data in seen.items()},
        state=env.proprioception(),
        subtask=subtask,
        places=tuple(place(object) for object in scene.objects),
        pixels=np.stack([_middles(masks, ids, object) for object in scene.objects]),
        mat=mat,
        mat_pixels=_middles(masks, ids, f"mat_{mat}"),
        held=held,
        openings=np.array([scene.opening(j) / (OPENED_RAD if j == DOOR else PULLED_M) for j in JOINTS]).clip(0, 1),
    )


def facts_of(shown: Sequence[Shown], objects: tuple[str, ...]) -> SceneFacts:
    return SceneFacts(
        objects=objects,
        places=tuple(s.places for s in shown),
        pixels=np.stack([s.pixels for s in shown]).astype(np.float32),
        mats=tuple(s.mat for s in shown),
        mat_pixels=np.stack([s.mat_pixels for s in shown]).astype(np.float32),
        held=tuple(s.held for s in shown),
        joints=JOINTS,
        openings=np.stack([s.openings for s in shown]).astype(np.float32),
    )


def _middles(masks: Sequence[np.ndarray], ids: Mapping[str, int], name: str) -> np.ndarray:
    """[C, 2]: (u, v) of the middle of what each mask shows of a thing, NaN where that is too little."""
    middles = np.full((len(masks), 2), np.nan)
    for camera, mask in enumerate(masks):
        rows, columns = np.nonzero(mask == ids.get(name, -1))
        if len(rows) >= SEEN_PX * (mask.shape[0] / 128) ** 2:
            middles[camera] = (columns.mean() + 0.5) / mask.shape[1], (rows.mean() + 0.5) / mask.shape[0]
    return middles

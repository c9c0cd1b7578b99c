"""Export to RoboMemArena's HDF5 layout: one file for each subtask of each episode.

`<category>/<task_id>_<task>_dataset/subtask_data/<primitive>_<order>_seed<seed>_task<task_id>.hdf5`, order
from 0, blanks of the subtask's label, as released, as underscores. In each file: `data/demo_0/actions` [T, 7] and
`data/demo_0/obs/` with `agentview_rgb` and `eye_in_hand_rgb` (uint8 [T, H, W, 3]), `ee_states`,
`gripper_states`, `joint_states` (see `arena_state`). Numbers are float64, as released. The attribute
`predimem` of `data` holds what the layout has no place for, so that the importer gets it all back.

Actions are copied, not converted: the arena's controller moves 0.1 m and opens the gripper at +1, the
release's is robosuite's, with other scales and the opposite sign.

Their builder of RLDS data (RoboMemArena_dataset_builder.py) takes images of 256 x 256 px only, reads the folders
`*_dataset` right below its root, which therefore is the folder of one category, and takes the words before the order
in a file's name for the language instruction.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from datagen.export.arena_state import DIM, robot_arrays
from predimem.core.episode_folder import list_episodes
from predimem.core.episode_reader import episode_checksum, load_episode
from predimem.core.episodes import Episode
from predimem.core.files import AtomicWrite
from predimem.core.frames import EpisodeError
from predimem.core.progress import watched
from predimem.core.subtask_labels import released
from predimem.envs.arena.tasks import task_of

CAMERAS = ("agentview_rgb", "eye_in_hand_rgb")
BUILDER_PX = 256
NOTE = "predimem"


def export_robomemarena(
    episodes: str | Path, out: str | Path, image_px: int | None = None, progress: bool = True
) -> list[Path]:
    """Write all episodes below the folder `episodes`; the files that there are then, in order.

    image_px: the width and height to which images are scaled, bicubically; None: they stay as recorded, which has to
    be what their builder takes. Files of an earlier, interrupted run are kept. Raises EpisodeError for an episode that
    the layout or the builder cannot take, and ValueError for a file that is there already and comes from another
    episode or has images of another size.
    """
    if image_px is not None and image_px < 1:
        raise ValueError(f"the images' width and height have to be 1 px or more, got {image_px}")
    files: list[Path] = []
    paths = list_episodes(episodes)
    for path in watched(paths, len(paths), "episodes", shown=progress):
        checksum, episode = episode_checksum(path), load_episode(path)
        task = check_episode(episode, path)
        _check_size(episode, path, image_px)
        for order in range(len(episode.subtasks)):
            target = subtask_path(out, episode, task, order)
            if target.exists():
                _check_same(target, checksum, image_px or BUILDER_PX, path)
            else:
                _write(target, episode, order, checksum, image_px or BUILDER_PX)
            files.append(target)
    return files


@dataclass(frozen=True)
class Heading:
    """What the folder and the files of an episode are named by."""

    task_id: int
    name: str
    category: str


def check_episode(episode: Episode, path: str | Path) -> Heading:
    """The heading of an arena episode whose spans follow each other without gaps; EpisodeError otherwise."""
    if set(episode.images) != set(CAMERAS) or episode.state.shape[1] != DIM or episode.actions.shape[1] != 7:
        raise EpisodeError(
            f"{path}: RoboMemArena's layout holds the cameras {' and '.join(CAMERAS)}, a state of {DIM} numbers and "
            f"actions of 7 (control mode pd_ee_delta_pose); this episode has {', '.join(episode.images)}, "
            f"{episode.state.shape[1]} and {episode.actions.shape[1]}"
        )
    bounds = [0, *(span.end for span in episode.subtasks)]
    if [span.start for span in episode.subtasks] != bounds[:-1] or bounds[-1] != len(episode):
        raise EpisodeError(f"{path}: the subtask spans have to cover steps 0 to {len(episode)} without gaps")
    for span in episode.subtasks:
        if not re.fullmatch(r"[^_/\\]+", span.label):
            raise EpisodeError(f"{path}: the subtask {span.label!r} cannot be part of a file name that is read back")
    if {"task_id", "category"} <= episode.metadata.keys():  # so that tasks of one's own need not be at hand
        return Heading(episode.metadata["task_id"], episode.task, episode.metadata["category"])
    task = task_of(episode.task)
    return Heading(task.task_id, task.name, task.category)


def _check_size(episode: Episode, path: Path, image_px: int | None) -> None:
    for camera, frames in episode.images.items():
        height, width = frames.shape[1:3]
        those = f"those of {camera} are {width} x {height} px"
        if height != width:
            raise EpisodeError(f"{path}: RoboMemArena's images are square, {those}")
        if image_px is None and height != BUILDER_PX:
            raise EpisodeError(
                f"{path}: RoboMemArena's builder takes images of {BUILDER_PX} x {BUILDER_PX} px only, {those}. Record "
                f"the episodes with `image_px: {BUILDER_PX}`; or scale the images with --image-px {BUILDER_PX}, which "
                "makes them larger and not more detailed"
            )


def subtask_path(root: str | Path, episode: Episode, task: Heading, order: int) -> Path:
    name = re.sub(r"(?<!^)(?=[A-Z])", "_", task.name).lower()
    primitive = released(episode.subtasks[order].label).replace(" ", "_")
    folder = Path(root) / task.category / f"{task.task_id}_{name}_dataset" / "subtask_data"
    return folder / f"{primitive}_{order}_seed{episode.seed}_task{task.task_id}.hdf5"


def _write(path: Path, episode: Episode, order: int, checksum: str, image_px: int) -> None:
    """Atomically: a file under its final name is whole."""
    import h5py

    span = episode.subtasks[order]
    steps = slice(span.start, span.end)
    with AtomicWrite(path) as partial, h5py.File(partial, "w") as file:
        file.create_group("data").attrs[NOTE] = json.dumps(_note(episode, checksum, image_px))
        demo = file.create_group("data/demo_0")
        demo.create_dataset("actions", data=np.asarray(episode.actions[steps], np.float64))
        for name, array in robot_arrays(episode.state[steps]).items():
            demo.create_dataset(f"obs/{name}", data=array)
        for camera in CAMERAS:
            frames = episode.images[camera]
            shape = (span.end - span.start, image_px, image_px, 3)
            packed = {"chunks": (1, *shape[1:]), "compression": "gzip"}
            dataset = demo.create_dataset(f"obs/{camera}", shape=shape, dtype=np.uint8, **packed)
            for row, step in enumerate(range(span.start, span.end)):
                dataset[row] = _scaled(frames[step], image_px)


def _scaled(image: np.ndarray, px: int) -> np.ndarray:
    """uint8 [px, px, 3]; the very image where it has this size."""
    if image.shape[:2] == (px, px):
        return image
    return np.asarray(Image.fromarray(image).resize((px, px), Image.Resampling.BICUBIC))


def _note(episode: Episode, checksum: str, image_px: int) -> dict[str, Any]:
    recorded = {camera: frames.shape[1] for camera, frames in episode.images.items()}
    scaled = {} if set(recorded.values()) == {image_px} else {"images_recorded_px": recorded}
    return {
        "checksum": checksum,
        "subtasks": len(episode.subtasks),
        "labels": [span.label for span in episode.subtasks],
        "suite": episode.benchmark,
        "instruction": episode.instruction,
        "control_hz": episode.control_hz,
        "success": episode.success,
        "goal": episode.goal,
        "metadata": dict(episode.metadata) | scaled,
    }


def read_note(data: Any) -> Mapping[str, Any]:
    """What `_write` noted in the group `data` of a file; empty where the file is not ours."""
    return json.loads(data.attrs[NOTE]) if NOTE in data.attrs else {}


def _check_same(target: Path, checksum: str, image_px: int, path: Path) -> None:
    import h5py

    try:
        with h5py.File(target, "r") as file:
            data: Any = file["data"]
            found, px = read_note(data).get("checksum"), data[f"demo_0/obs/{CAMERAS[0]}"].shape[1]
    except (OSError, KeyError, ValueError) as error:
        raise ValueError(f"{target} is there already and cannot be read ({error}): choose another --out") from error
    if found != checksum:
        raise ValueError(f"{target} is there already and does not come from {path}: choose another --out")
    if px != image_px:
        raise ValueError(f"{target} is there already with images of {px} px, not {image_px}: choose another --out")

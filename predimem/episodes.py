"""Episodes on disk: one HDF5 file each, versioned, with a checksum, written once and never edited.

Layout (format version 1): attributes `format`, `version`, `checksum` and `meta` (JSON); datasets
`images/<camera>` uint8 [T, H, W, 3] (gzip, one chunk per frame, so that one frame can be read
alone), `state` float32 [T, D], `actions` float32 [T, A], and, where the expert can label what was
not done, `alternatives/*` (see `Alternatives`). The checksum is SHA-256 over the dataset names,
shapes and bytes and over `meta`.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

FORMAT = "predimem-episode"
VERSION = 1


class EpisodeError(ValueError):
    """A file that is not a whole, unaltered episode of a version that this code reads."""


@dataclass(frozen=True)
class SubtaskSpan:
    """The subtask `label` holds for control steps start <= t < end."""

    start: int
    end: int
    label: str


@dataclass(frozen=True, eq=False)
class Alternatives:
    """What the scripted expert would do at each step for each of K subtasks, done or not.

    They let one image supervise several subtasks (counterfactual relabelling). chunks: float32
    [T, K, H, A] in physical units; valid: bool [T, K]; targets_m: float32 [T, K, 3], the target's
    position in the robot's base frame, NaN where a subtask has none; pixels: float32 [T, K, C, 2],
    the target's (u, v) in each camera as fractions of width and height, NaN where not in view.
    """

    subtasks: tuple[str, ...]
    chunks: np.ndarray
    valid: np.ndarray
    targets_m: np.ndarray
    pixels: np.ndarray


@dataclass(frozen=True, eq=False)
class Episode:
    """One demonstration. All arrays share the leading axis T (control steps).

    `goal` is the subtask that fulfils the instruction in this episode (e.g. "touch the teal cube").
    """

    suite: str
    task: str
    seed: int
    instruction: str
    control_hz: float
    success: bool
    images: Mapping[str, np.ndarray]
    state: np.ndarray
    actions: np.ndarray
    subtasks: tuple[SubtaskSpan, ...]
    keyframes: tuple[int, ...]
    goal: str = ""
    alternatives: Alternatives | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.state)

    def subtask_at(self, step: int) -> str:
        """The label of the span that holds `step`. Raises IndexError outside all spans."""
        for span in self.subtasks:
            if span.start <= step < span.end:
                return span.label
        raise IndexError(f"step {step} is in no subtask span of {self.task} seed {self.seed}")


def episode_path(root: str | Path, task: str, seed: int) -> Path:
    return Path(root) / task / f"seed{seed:010d}.h5"


def list_episodes(root: str | Path) -> list[Path]:
    """All episode files below `root`, in a fixed order. Raises EpisodeError if there is none."""
    paths = sorted(Path(root).rglob("seed*.h5"))
    if not paths:
        raise EpisodeError(f"no episodes under {root}: make some with `predimem datagen`")
    return paths


def save_episode(path: str | Path, episode: Episode) -> None:
    """Write atomically: a file under its final name is whole."""
    import h5py

    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    arrays = _arrays(episode)
    meta = json.dumps(_meta(episode), sort_keys=True)
    partial = path.with_suffix(".partial")
    with h5py.File(partial, "w") as file:
        for name, array in arrays.items():
            if name.startswith("images/"):
                file.create_dataset(name, data=array, chunks=(1, *array.shape[1:]), compression="gzip")
            else:
                file.create_dataset(name, data=array)
        file.attrs.update(format=FORMAT, version=VERSION, meta=meta, checksum=_checksum(arrays, meta))
    os.replace(partial, path)


def load_episode(path: str | Path) -> Episode:
    """Read and verify one episode. Raises EpisodeError if it is truncated, altered or too new."""
    import h5py

    try:
        with h5py.File(path, "r") as file:
            if file.attrs.get("format") != FORMAT:
                raise EpisodeError(f"{path} is not a PrediMem episode")
            if file.attrs["version"] != VERSION:
                raise EpisodeError(
                    f"{path} has episode version {file.attrs['version']}; this code reads {VERSION}"
                )
            meta, checksum = str(file.attrs["meta"]), str(file.attrs["checksum"])
            arrays: dict[str, np.ndarray] = {}
            file.visititems(lambda name, item: _collect(arrays, name, item))
    except EpisodeError:
        raise
    except (OSError, RuntimeError, KeyError, ValueError, TypeError) as error:  # h5py raises any of these
        raise EpisodeError(f"{path} cannot be read (truncated or damaged?): {error}") from error
    if _checksum(arrays, meta) != checksum:
        raise EpisodeError(f"{path} does not match its checksum: it was altered or damaged; make it again")
    return _episode(json.loads(meta), arrays)


def episode_checksum(path: str | Path) -> str:
    """The checksum noted in an episode file, by which what was derived from it names its source.

    Only noted, not verified: `load_episode` does that. Raises EpisodeError if there is none.
    """
    import h5py

    try:
        with h5py.File(path, "r") as file:
            return str(file.attrs["checksum"])
    except (OSError, RuntimeError, KeyError) as error:
        raise EpisodeError(f"{path} is not a PrediMem episode, or damaged: {error}") from error


def _collect(arrays: dict[str, np.ndarray], name: str, item: Any) -> None:
    if hasattr(item, "shape"):
        arrays[name] = item[()]


def _arrays(episode: Episode) -> dict[str, np.ndarray]:
    arrays: dict[str, np.ndarray] = {}
    for name, frames in episode.images.items():
        arrays[f"images/{name}"] = np.asarray(frames, np.uint8)
    arrays["state"] = np.asarray(episode.state, np.float32)
    arrays["actions"] = np.asarray(episode.actions, np.float32)
    if episode.alternatives is not None:
        alt = episode.alternatives
        arrays["alternatives/chunks"] = np.asarray(alt.chunks, np.float32)
        arrays["alternatives/valid"] = np.asarray(alt.valid, bool)
        arrays["alternatives/targets_m"] = np.asarray(alt.targets_m, np.float32)
        arrays["alternatives/pixels"] = np.asarray(alt.pixels, np.float32)
    lengths = {name: len(array) for name, array in arrays.items()}
    if len(set(lengths.values())) != 1:
        raise EpisodeError(f"all arrays of an episode need the same number of steps, got {lengths}")
    return arrays


def _meta(episode: Episode) -> dict[str, Any]:
    return {
        "suite": episode.suite,
        "task": episode.task,
        "seed": episode.seed,
        "instruction": episode.instruction,
        "control_hz": episode.control_hz,
        "success": episode.success,
        "cameras": list(episode.images),
        "subtasks": [asdict(span) for span in episode.subtasks],
        "keyframes": list(episode.keyframes),
        "goal": episode.goal,
        "alternative_subtasks": list(episode.alternatives.subtasks) if episode.alternatives else None,
        "metadata": dict(episode.metadata),
    }


def _episode(meta: dict[str, Any], arrays: dict[str, np.ndarray]) -> Episode:
    alternatives = None
    if meta["alternative_subtasks"] is not None:
        parts = {k: arrays[f"alternatives/{k}"] for k in ("chunks", "valid", "targets_m", "pixels")}
        alternatives = Alternatives(subtasks=tuple(meta["alternative_subtasks"]), **parts)
    return Episode(
        suite=meta["suite"],
        task=meta["task"],
        seed=meta["seed"],
        instruction=meta["instruction"],
        control_hz=meta["control_hz"],
        success=meta["success"],
        images={name: arrays[f"images/{name}"] for name in meta["cameras"]},
        state=arrays["state"],
        actions=arrays["actions"],
        subtasks=tuple(SubtaskSpan(**span) for span in meta["subtasks"]),
        keyframes=tuple(meta["keyframes"]),
        goal=meta["goal"],
        alternatives=alternatives,
        metadata=meta["metadata"],
    )


def _checksum(arrays: Mapping[str, np.ndarray], meta: str) -> str:
    digest = hashlib.sha256(meta.encode())
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        digest.update(f"{name}{array.shape}{array.dtype}".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()

"""Episodes are written step by step while they are played, or at once, and get their name when they are whole."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from predimem.core.episode_format import FORMAT, VERSION, combined_checksum, header
from predimem.core.episodes import Alternatives, Episode, SubtaskSpan
from predimem.core.files import AtomicWrite
from predimem.core.frames import EpisodeError, Frames
from predimem.core.hdf5_file import Hdf5File, uninterrupted


class EpisodeWriter:
    """Writes an episode while it is played: images go to the file one by one.

    cameras: name -> (height, width). Call `add` for each control step, then `finish`. A file under its
    final name is whole: until then it is called `.partial`, which is deleted by `abandon` and on
    leaving the `with` block without `finish`. Raises EpisodeError for what does not fit together, and OSError where the
    disk is full.
    """

    def __init__(
        self,
        path: str | Path,
        benchmark: str,
        task: str,
        seed: int,
        control_hz: float,
        cameras: Mapping[str, tuple[int, int]],
    ) -> None:
        import h5py

        self._path, self._whole = Path(path), AtomicWrite(path)
        self._meta = {
            "suite": benchmark,
            "task": task,
            "seed": seed,
            "control_hz": control_hz,
            "cameras": list(cameras),
        }
        self._digests = {name: hashlib.sha256() for name in cameras}
        self._images = 0
        self._rows: list[int] = []
        self._state: list[np.ndarray] = []
        self._actions: list[np.ndarray] = []
        self._disk = Hdf5File(self._whole.partial)
        self._file: Any = h5py.File(self._disk, "w")
        self._file.attrs.update(format=FORMAT, version=VERSION)
        for name, (height, width) in cameras.items():
            shape = (height, width, 3)
            self._file.create_dataset(
                f"images/{name}",
                shape=(0, *shape),
                maxshape=(None, *shape),
                dtype=np.uint8,
                chunks=(1, *shape),
                compression="gzip",
            )

    @uninterrupted()
    def add(self, images: Mapping[str, np.ndarray] | None, state: np.ndarray, action: np.ndarray) -> None:
        """Add one control step.

        images: camera -> uint8 [H, W, 3], of all cameras; None where none were taken, so that the last ones hold. The
        first step needs them.
        """
        if images is not None:
            self._add_images(images)
        elif not self._images and self._digests:
            raise EpisodeError("the first step of an episode needs images")
        self._rows.append(self._images - 1)
        self._state.append(np.array(state, np.float32))
        self._actions.append(np.array(action, np.float32))

    @uninterrupted()
    def finish(
        self,
        instruction: str,
        success: bool,
        subtasks: Sequence[SubtaskSpan],
        keyframes: Sequence[int],
        goal: str = "",
        metadata: Mapping[str, Any] | None = None,
        alternatives: Alternatives | None = None,
    ) -> None:
        """Give the file its final name.

        subtasks: in their order, without overlaps. keyframes: steps of the episode.
        """
        if not self._rows:
            raise EpisodeError(f"{self._path}: an episode needs at least one step")
        _check_annotations(subtasks, keyframes, len(self._rows))
        meta = self._meta | {
            "instruction": instruction,
            "success": bool(success),
            "subtasks": [asdict(span) for span in subtasks],
            "keyframes": [int(step) for step in keyframes],
            "goal": goal,
            "alternative_subtasks": list(alternatives.subtasks) if alternatives else None,
            "metadata": dict(metadata or {}),
        }
        arrays = {"state": np.stack(self._state), "actions": np.stack(self._actions), **_arrays(alternatives)}
        _check_lengths(arrays)
        if self._digests and self._images < len(self._rows):
            arrays["image_rows"] = np.array(self._rows, np.int32)
        text = json.dumps(meta, sort_keys=True)
        parts = {f"images/{name}": digest.hexdigest() for name, digest in self._digests.items()}
        for name, array in arrays.items():
            self._file.create_dataset(name, data=array)
            parts[name] = hashlib.sha256(array.tobytes()).hexdigest()
        headers = {name: header(name, self._file[name]) for name in parts}
        self._file.attrs.update(meta=text, checksum=combined_checksum(text, headers, parts))
        self._file.close()
        self._disk.check()
        self._disk.close()
        self._whole.finish()

    @uninterrupted()
    def abandon(self) -> None:
        """Delete what has been written so far; after `finish` there is nothing to delete."""
        try:
            self._file.close()
            self._disk.close()
        finally:
            self._whole.abandon()

    def __enter__(self) -> EpisodeWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.abandon()

    def _add_images(self, images: Mapping[str, np.ndarray]) -> None:
        if set(images) != set(self._digests):
            raise EpisodeError(f"expected images of {', '.join(self._digests)}, got {', '.join(images) or 'none'}")
        for name, image in images.items():
            dataset = self._file[f"images/{name}"]
            if image.dtype != np.uint8 or image.shape != dataset.shape[1:]:
                expected = f"uint8 {list(dataset.shape[1:])}"
                raise EpisodeError(f"{name}: expected {expected}, got {image.dtype} {list(image.shape)}")
        for name, image in images.items():
            dataset = self._file[f"images/{name}"]
            dataset.resize(self._images + 1, axis=0)
            dataset[self._images] = image
            self._digests[name].update(np.ascontiguousarray(image).data)
        self._disk.check()
        self._images += 1


def save_episode(path: str | Path, episode: Episode) -> None:
    """Write atomically: a file under its final name is whole."""
    arrays = {"state": episode.state, "actions": episode.actions, **_arrays(episode.alternatives)}
    _check_lengths(arrays | dict(episode.images))
    cameras = {name: frames.shape[1:3] for name, frames in episode.images.items()}
    with EpisodeWriter(path, episode.benchmark, episode.task, episode.seed, episode.control_hz, cameras) as writer:
        for step, fresh in enumerate(episode.image_steps):
            images = {name: frames[step] for name, frames in episode.images.items()} if fresh else None
            writer.add(images, episode.state[step], episode.actions[step])
        writer.finish(
            instruction=episode.instruction,
            success=episode.success,
            subtasks=episode.subtasks,
            keyframes=episode.keyframes,
            goal=episode.goal,
            metadata=episode.metadata,
            alternatives=episode.alternatives,
        )


def _arrays(alternatives: Alternatives | None) -> dict[str, np.ndarray]:
    if alternatives is None:
        return {}
    return {
        "alternatives/chunks": np.asarray(alternatives.chunks, np.float32),
        "alternatives/valid": np.asarray(alternatives.valid, bool),
        "alternatives/targets_m": np.asarray(alternatives.targets_m, np.float32),
        "alternatives/pixels": np.asarray(alternatives.pixels, np.float32),
    }


def _check_lengths(arrays: Mapping[str, np.ndarray | Frames]) -> None:
    lengths = {name: len(array) for name, array in arrays.items()}
    if len(set(lengths.values())) != 1:
        raise EpisodeError(f"all arrays of an episode need the same number of steps, got {lengths}")


def _check_annotations(subtasks: Sequence[SubtaskSpan], keyframes: Sequence[int], steps: int) -> None:
    """Raises EpisodeError for spans and keyframes that no step of the episode has."""
    before = 0
    for span in subtasks:
        if not isinstance(span.label, str) or not span.label:
            raise EpisodeError(f"expected SubtaskSpan(start, end, label) with a label in words, got {span}")
        if not before <= span.start < span.end <= steps:
            raise EpisodeError(
                f"{span}: expected start < end within the episode's {steps} steps, after the span before it, which "
                f"ends at {before}"
            )
        before = span.end
    outside = [step for step in keyframes if not 0 <= step < steps]
    if outside:
        raise EpisodeError(f"keyframe {outside[0]} is no step of the episode, which has {steps}")

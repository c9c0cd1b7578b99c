"""Episodes on disk: one HDF5 file each, versioned, with a checksum, written once and never edited.

Layout (format version 2): attributes `format`, `version`, `checksum` and `meta` (JSON); datasets
`images/<camera>` uint8 [N, H, W, 3] (gzip, one chunk per image, so that one can be read alone: of
gzip, LZF, PNG and no compression the best trade, docs/benchmarks/episode_files.md),
`image_rows` int32 [T] where images were taken less often than control steps (see `Frames`; else
N = T), `state` float32 [T, D], `actions` float32 [T, A], and, where the expert can label what was not
done, `alternatives/*` (see `Alternatives`). The checksum is SHA-256 over `meta` and, by name, the
shape, type and SHA-256 of the bytes of each dataset. Version 1, which is read as well, has no
`image_rows`, and its checksum runs over the bytes themselves.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from predimem.core.config import PACKAGE, read_yaml
from predimem.core.files import AtomicWrite
from predimem.core.frames import EpisodeError, Frames, StoredImages
from predimem.core.hdf5_file import Hdf5File, uninterrupted
from predimem.core.progress import watched

VIDEO_STEPS = "video_steps"  # of `Episode.metadata`
FORMAT = "predimem-episode"
VERSION = 2
READABLE = (1, 2)
NAME_SUBTASKS = (
    "name its subtasks with `predimem annotate`, or import it again with `--subtasks spans.csv`, or with `--subtasks "
    "instruction` for the whole instruction as the only one"
)


class NoSubtask(EpisodeError, IndexError):
    """A step, or a whole episode, without the subtask that training needs."""


@dataclass(frozen=True)
class SubtaskSpan:
    """The subtask `label` holds for control steps start <= t < end."""

    start: int
    end: int
    label: str


@dataclass(frozen=True, eq=False)
class Alternatives:
    """What the scripted expert would do at each step for each of K subtasks, done or not.

    They let one image supervise several subtasks (counterfactual relabelling).

    chunks: float32 [T, K, H, A], in physical units.
    valid: bool [T, K].
    targets_m: float32 [T, K, 3], the target's position in the robot's base frame, NaN where a subtask has none.
    pixels: float32 [T, K, C, 2], the target's (u, v) in each camera as fractions of width and height, NaN where it is
    not in view.
    """

    subtasks: tuple[str, ...]
    chunks: np.ndarray
    valid: np.ndarray
    targets_m: np.ndarray
    pixels: np.ndarray


@dataclass(frozen=True, eq=False)
class Episode:
    """One demonstration. All arrays share the leading axis T (control steps).

    benchmark: whose task it is; its key in the file is `suite`.
    goal: the subtask that fulfils the instruction in this episode, such as "touch the teal cube".
    images: camera -> `Frames`; plain arrays uint8 [T, H, W, 3] are made into them.
    """

    benchmark: str
    task: str
    seed: int
    instruction: str
    control_hz: float
    success: bool
    images: Mapping[str, Frames]
    state: np.ndarray
    actions: np.ndarray
    subtasks: tuple[SubtaskSpan, ...]
    keyframes: tuple[int, ...]
    goal: str = ""
    alternatives: Alternatives | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        frames = {name: f if isinstance(f, Frames) else Frames(f) for name, f in self.images.items()}
        object.__setattr__(self, "images", frames)

    def __len__(self) -> int:
        return len(self.state)

    @property
    def image_steps(self) -> np.ndarray:
        """bool [T]: at which steps fresh images were taken, by any camera."""
        return np.any([np.zeros(len(self), bool), *(frames.stored for frames in self.images.values())], axis=0)

    @property
    def video_steps(self) -> int:
        """How many of the first steps are a conditioning video, in which the robot that is trained did not act."""
        return int(self.metadata.get(VIDEO_STEPS, 0))

    def subtask_at(self, step: int) -> str:
        """The label of the span that holds `step`. Raises NoSubtask outside all spans."""
        for span in self.subtasks:
            if span.start <= step < span.end:
                return span.label
        raise NoSubtask(f"step {step} is in no subtask span of {self.task} seed {self.seed}: {NAME_SUBTASKS}")


def check_subtasks(episode: Episode, where: str | Path) -> None:
    """Raises NoSubtask for an episode without any."""
    if not episode.subtasks and episode.alternatives is None:
        raise NoSubtask(f"{where}: {episode.task} seed {episode.seed} has no subtasks: {NAME_SUBTASKS}")


def episode_path(root: str | Path, task: str, seed: int) -> Path:
    return Path(root) / task / f"seed{seed:010d}.h5"


def list_episodes(root: str | Path) -> list[Path]:
    """All episode files below `root`, in a fixed order. Raises EpisodeError if there is none."""
    paths = sorted(Path(root).rglob("seed*.h5"))
    if not paths:
        raise EpisodeError(f"no episodes under {root}: {_who_makes(Path(root))}")
    return paths


def _who_makes(root: Path) -> str:
    """The command that makes the episodes of a folder: that of the shipped config whose folder it is."""
    commands = {"datagen*.yaml": "datagen", "train_arena.yaml": "train arena"}
    for pattern, command in commands.items():
        for path in sorted((PACKAGE / "configs").glob(pattern)):
            made = Path(read_yaml(path)["out"])
            if root.parts[: len(made.parts)] == made.parts:
                return f"make them with `predimem {command} --config configs/{path.name}`"
    return (
        f"make some of MIKASA with `predimem datagen --config configs/datagen_mikasa.yaml --out {root}`, or of the "
        f"arena with `predimem datagen --config configs/datagen.yaml --out {root}`"
    )


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
        headers = {name: _header(name, self._file[name]) for name in parts}
        self._file.attrs.update(meta=text, checksum=_combined(text, headers, parts))
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


def load_episode(path: str | Path, *, verify: bool = True, in_memory: bool = False) -> Episode:
    """Load one episode, whose images are read from the file when they are asked for.

    verify: read everything once, an image at a time, and compare it with the checksum. Leave this out only where this
    file has been verified already.
    in_memory: keep all images; the file is then no longer needed.
    Raises EpisodeError if the file is truncated, altered or too new.
    """
    import h5py

    if not Path(path).is_file():
        raise EpisodeError(f"there is no episode {path}: expected a file such as .../seed0000001000.h5")
    try:
        with h5py.File(path, "r") as file:
            attributes: Any = file.attrs
            if attributes.get("format") != FORMAT:
                raise EpisodeError(f"{path} is not a PrediMem episode")
            version = int(attributes["version"])
            if version not in READABLE:
                readable = " and ".join(map(str, READABLE))
                raise EpisodeError(f"{path} has episode version {version}; this code reads {readable}")
            meta, checksum = str(attributes["meta"]), str(attributes["checksum"])
            data: dict[str, np.ndarray | StoredImages] = {}
            headers: dict[str, str] = {}
            file.visititems(lambda name, item: _collect(data, headers, name, item))
        if verify and _checksum(version, meta, headers, data) != checksum:
            raise EpisodeError(f"{path} does not match its checksum: it was altered or damaged; make it again")
        return _episode(json.loads(meta), data, in_memory)
    except EpisodeError:
        raise
    except (OSError, RuntimeError, KeyError, ValueError, TypeError, MemoryError) as error:  # h5py raises any of these
        raise EpisodeError(f"{path} cannot be read (truncated or damaged?): {error}") from error


_VERIFIED: set[tuple[str, int, int]] = set()  # path, size and time of change


def load_episodes(root: str | Path) -> list[Episode]:
    """All episodes below `root`, in the order of `list_episodes`; a progress bar if it takes long.

    Verified, unless this process has done so before and the file has not changed since: in threads, since unpacking
    and hashing, nearly all of the work (0.4 ms an image of 128 px), leave Python's lock.
    """

    def load(path: Path) -> Episode:
        status = path.stat()
        version = (str(path.resolve()), status.st_size, status.st_mtime_ns)
        episode = load_episode(path, verify=version not in _VERIFIED)
        _VERIFIED.add(version)
        return episode

    paths = list_episodes(root)
    pool = ThreadPoolExecutor()
    try:
        return list(watched(pool.map(load, paths), len(paths), "episodes", "verifying", delay_s=3.0))
    finally:
        pool.shutdown(cancel_futures=True)


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


def _collect(data: dict[str, np.ndarray | StoredImages], headers: dict[str, str], name: str, item: Any) -> None:
    if hasattr(item, "shape"):
        data[name] = StoredImages(item) if name.startswith("images/") else item[()]
        headers[name] = _header(name, item)


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


def _episode(meta: dict[str, Any], data: dict[str, Any], in_memory: bool) -> Episode:
    alternatives = None
    if meta["alternative_subtasks"] is not None:
        parts = {k: data[f"alternatives/{k}"] for k in ("chunks", "valid", "targets_m", "pixels")}
        alternatives = Alternatives(subtasks=tuple(meta["alternative_subtasks"]), **parts)
    images = {name: data[f"images/{name}"] for name in meta["cameras"]}
    if in_memory:
        images = {name: np.asarray(Frames(stored)) for name, stored in images.items()}
    return Episode(
        benchmark=meta["suite"],
        task=meta["task"],
        seed=meta["seed"],
        instruction=meta["instruction"],
        control_hz=meta["control_hz"],
        success=meta["success"],
        images={name: Frames(stored, data.get("image_rows")) for name, stored in images.items()},
        state=data["state"],
        actions=data["actions"],
        subtasks=tuple(SubtaskSpan(**span) for span in meta["subtasks"]),
        keyframes=tuple(meta["keyframes"]),
        goal=meta["goal"],
        alternatives=alternatives,
        metadata=meta["metadata"],
    )


def _header(name: str, array: Any) -> str:
    return f"{name}{tuple(array.shape)}{array.dtype}"


def _checksum(
    version: int, meta: str, headers: Mapping[str, str], data: Mapping[str, np.ndarray | StoredImages]
) -> str:
    """Of what was read from a file; images pass through one by one."""
    if version == 1:
        digest = hashlib.sha256(meta.encode())
        for name in sorted(data):
            digest.update(headers[name].encode())
            for block in _blocks(data[name]):
                digest.update(block)
        return digest.hexdigest()
    parts = {}
    for name, array in data.items():
        digest = hashlib.sha256()
        for block in _blocks(array):
            digest.update(block)
        parts[name] = digest.hexdigest()
    return _combined(meta, headers, parts)


def _combined(meta: str, headers: Mapping[str, str], parts: Mapping[str, str]) -> str:
    """Version 2's checksum, from the SHA-256 of each dataset: it can be had while the episode is written."""
    digest = hashlib.sha256(meta.encode())
    for name in sorted(parts):
        digest.update(f"{headers[name]}{parts[name]}".encode())
    return digest.hexdigest()


def _blocks(array: np.ndarray | StoredImages) -> Iterator[bytes | memoryview]:
    if isinstance(array, np.ndarray):
        yield array.tobytes()
    else:
        yield from (image.data for image in array)

"""The images of one camera over an episode: in memory, or read from the episode's file when they are asked for.

An arena episode of 1,000 steps is 0.1 GB of images (2 x 128 px) or 0.4 GB (2 x 256 px), a data set hundreds of
episodes: nobody can hold that, and training wants a few random images at a time.

`StoredImages` notes where each compressed image lies in the HDF5 file and reads it there without HDF5: no file
stays open, nothing breaks in forked or spawned processes, and threads do not queue for h5py's lock.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, NamedTuple, Protocol

import numpy as np

CACHED_IMAGES = 64  # decoded, in each process, over all episodes: 13 MB at 256 px


class EpisodeError(ValueError):
    """Episodes that cannot be used: a file that is not whole or of another version, a folder without any, images or
    annotations that do not fit the rest."""


class Images(Protocol):
    """N images of one camera, wherever they are: `images[row]` is uint8 [H, W, 3]."""

    shape: tuple[int, ...]

    def __len__(self) -> int: ...

    def __getitem__(self, row: int, /) -> np.ndarray: ...

    def __iter__(self) -> Iterator[np.ndarray]: ...


class _Stamp(NamedTuple):
    """By what a file is known again: one that was replaced has its images elsewhere."""

    path: str
    size: int
    modified_ns: int


class StoredImages:
    """The distinct images of one camera in an episode file: `images[row]` is uint8 [H, W, 3], read-only.

    dataset: h5py's, uint8 [N, H, W, 3], gzip, one chunk for each image. Holds no open file and can be pickled;
    raises EpisodeError when an image cannot be read, or when the file changed after this was made.
    """

    def __init__(self, dataset: Any) -> None:
        path, shape = dataset.file.filename, dataset.shape
        if dataset.dtype != np.uint8 or len(shape) != 4 or shape[3] != 3:
            found = f"{dataset.dtype} {list(shape)}"
            raise EpisodeError(f"{path}: {dataset.name} has to be uint8 [N, H, W, 3], it is {found}")
        if dataset.chunks != (1, *shape[1:]) or dataset.compression != "gzip" or dataset.shuffle:
            raise EpisodeError(f"{path}: {dataset.name} has to be gzip with one chunk for each image")
        places = {}
        dataset.id.chunk_iter(lambda c: places.__setitem__(c.chunk_offset[0], (c.byte_offset, c.size, c.filter_mask)))
        if sorted(places) != list(range(shape[0])) or any(mask for _, _, mask in places.values()):
            raise EpisodeError(f"{path}: images of {dataset.name} are missing")
        table = np.array([places[row][:2] for row in range(shape[0])], np.int64).reshape(-1, 2)
        self.shape: tuple[int, ...] = tuple(shape)
        self._offsets, self._sizes = table[:, 0].copy(), table[:, 1].copy()
        status = os.stat(path)
        self._stamp = _Stamp(os.path.abspath(path), status.st_size, status.st_mtime_ns)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, row: int) -> np.ndarray:
        return _read_cached(self._stamp, int(self._offsets[row]), int(self._sizes[row]), self.shape[1:])

    def __iter__(self) -> Iterator[np.ndarray]:
        """All in turn, none of them kept."""
        for offset, size in zip(self._offsets.tolist(), self._sizes.tolist(), strict=True):
            yield _read(self._stamp, offset, size, self.shape[1:])


def _read(stamp: _Stamp, offset: int, size: int, shape: tuple[int, ...]) -> np.ndarray:
    try:
        file = os.open(stamp.path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            status = os.fstat(file)
            if (status.st_size, status.st_mtime_ns) != stamp[1:]:
                raise EpisodeError(f"{stamp.path} was replaced or altered after it was loaded: load it again")
            content = os.pread(file, min(size, stamp.size), offset)
        finally:
            os.close(file)
        image = np.frombuffer(zlib.decompress(content), np.uint8).reshape(shape).copy()  # an array of its own
        image.flags.writeable = False
    except EpisodeError:
        raise
    except (OSError, zlib.error, ValueError, OverflowError) as error:
        raise EpisodeError(f"{stamp.path} cannot be read (truncated or damaged?): {error}") from error
    return image


_read_cached = lru_cache(maxsize=CACHED_IMAGES)(_read)


class Frames:
    """The image of one camera at each step: a read-only sequence of uint8 [T, H, W, 3].

    `frames[t]` is uint8 [H, W, 3]; `frames[a:b]`, `frames[[2, 5]]` and `np.asarray(frames)` are arrays; a tuple
    indexes the images as well (`frames[::10, ::2, ::2]`). `images` are the N distinct ones, `rows` int32 [T]
    says which of them holds at each step: all of them in turn, each from the step at which it was taken. Without
    `rows` each step has its own.
    """

    dtype = np.dtype(np.uint8)

    def __init__(self, images: np.ndarray | Images, rows: np.ndarray | None = None) -> None:
        if isinstance(images, np.ndarray):
            if images.dtype != np.uint8 or images.ndim != 4 or images.shape[3] != 3:
                raise ValueError(f"images have to be uint8 [N, H, W, 3], got {images.dtype} {list(images.shape)}")
            images = images.view()
            images.flags.writeable = False
        count = len(images)
        rows = np.arange(count, dtype=np.int32) if rows is None else np.asarray(rows, np.int32)
        steps = np.diff(rows, prepend=-1, append=count)
        if steps[0] != 1 or steps[-1] != 1 or not np.isin(steps, (0, 1)).all():
            raise ValueError(f"rows have to go from 0 to {count - 1}, by 0 or 1 from each step to the next")
        self.images = images
        self.rows = rows
        self.shape: tuple[int, int, int, int] = (len(rows), images.shape[1], images.shape[2], 3)

    @property
    def stored(self) -> np.ndarray:
        """bool [T]: at which steps a fresh image was taken."""
        return np.diff(self.rows, prepend=-1) > 0

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: Any) -> np.ndarray:
        if isinstance(index, tuple):
            if index and (index[0] is Ellipsis or index[0] is None):
                return np.asarray(self)[index]
            frames = self[index[0]]
            return frames[index[1:] if frames.ndim == 3 else (slice(None), *index[1:])]
        rows = self.rows[index]
        if rows.ndim == 0:
            return self.images[int(rows)]
        if isinstance(self.images, np.ndarray):
            return self.images[rows]
        frames = np.empty((len(rows), *self.shape[1:]), np.uint8)
        for i, row in enumerate(rows):
            frames[i] = self.images[int(row)]
        return frames

    def __iter__(self) -> Iterator[np.ndarray]:
        return (self.images[int(row)] for row in self.rows)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        whole = isinstance(self.images, np.ndarray) and len(self.images) == len(self.rows)
        return np.array(self.images if whole else self[:], dtype=dtype, copy=bool(copy))

    def __repr__(self) -> str:
        where = "memory" if isinstance(self.images, np.ndarray) else "a file"
        return f"Frames({list(self.shape)}, {len(self.images)} images in {where})"


class StepImages(Mapping[str, np.ndarray]):
    """The images of one step of an episode, by camera. Each is read when it is asked for, and nobody can change it."""

    def __init__(self, images: Mapping[str, Frames], step: int) -> None:
        self._images, self._step = images, step

    def __getitem__(self, camera: str) -> np.ndarray:
        return self._images[camera][self._step]

    def __contains__(self, camera: object) -> bool:
        return camera in self._images  # Mapping's own would read the image

    def __iter__(self) -> Iterator[str]:
        return iter(self._images)

    def __len__(self) -> int:
        return len(self._images)

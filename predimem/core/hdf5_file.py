"""Writing with HDF5 without the two things that make it crash the process: a full disk, and Ctrl-C inside it."""

from __future__ import annotations

import io
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from predimem.core.faults import disk_fault


@contextmanager
def uninterrupted() -> Iterator[None]:
    """A Ctrl-C that comes inside is handled at the end. Where Python handles none (another thread, a worker process
    that ignores it) nothing changes."""
    handler = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(handler):
        yield
        return
    came: list[tuple[int, FrameType | None]] = []
    signal.signal(signal.SIGINT, lambda number, frame: came.append((number, frame)))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
        if came:
            handler(*came[0])


class Hdf5File(io.FileIO):
    """For `h5py.File(Hdf5File(path), "w")`. After a write that failed nothing more is written, and `check` raises."""

    def __init__(self, path: Any):
        super().__init__(path, "w+")
        self._path = path
        self._error: OSError | None = None

    def check(self) -> None:
        """Raises OSError, with the path, if something of what HDF5 wrote did not get to the disk."""
        if self._error is not None:
            raise disk_fault(self._error, self._path) or self._error

    def write(self, data: Any) -> int:
        rest = memoryview(data).cast("B")
        size = len(rest)
        while rest and self._error is None:
            try:
                rest = rest[super().write(rest) :]
            except OSError as error:
                self._error = error
        return size

    def truncate(self, size: int | None = None) -> int:
        try:
            return super().truncate(size)
        except OSError as error:
            self._error = self._error or error
            return size or 0

"""A file that HDF5 writes to without ever being told that it cannot: on a full disk HDF5 crashes the process."""

from __future__ import annotations

import io
from typing import Any

from predimem.core.faults import disk_fault


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

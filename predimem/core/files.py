"""Files and folders that are whole under their name: they are written beside it, and moved there when they are done."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any

from predimem.core.faults import disk_fault
from predimem.core.progress import stage


class AtomicWrite:
    """A file or a folder in the making. Write to `partial`, then `finish` gives it its name, or `abandon` deletes it.

        with AtomicWrite(path) as partial:
            partial.write_bytes(data)

    The end of the `with` block finishes it, and an exception in the block abandons it. What has the name until then
    is replaced. What a crash left behind is removed by the next attempt. ending: is added to the name meanwhile, for
    writers that choose the format by the end of the name. A full disk is an OSError with the path, whatever the block
    raised of it.
    """

    def __init__(self, path: str | Path, ending: str = ".partial"):
        self._path = Path(path)
        self.partial = self._path.with_name(self._path.name + ending)
        self._path.parent.mkdir(parents=True, exist_ok=True)
        _remove(self.partial)

    def finish(self) -> None:
        if self._path.is_dir() and not self._path.is_symlink():  # `os.replace` only replaces files
            shutil.rmtree(self._path)
        os.replace(self.partial, self._path)

    def abandon(self) -> None:
        """Nothing happens where it was finished or never begun."""
        _remove(self.partial)

    def __enter__(self) -> Path:
        return self.partial

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.finish()
            return
        fault = None if error is None else disk_fault(error, self._path)  # before what is deleted makes room
        self.abandon()
        if fault is not None:
            raise fault from error


def check_folder(path: str | Path) -> None:
    """Raises OSError unless files can be written below the folder `path`, which need not be there yet.

    A file without a name is written on trial, so that nothing is left behind, not even the folder.
    """
    place = Path(path)
    while not place.exists():
        place = place.parent
    if not place.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(place))
    try:
        with tempfile.TemporaryFile(dir=place) as file:
            file.write(bytes(4096))
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(place)) from error


@contextmanager
def one_at_a_time(folder: str | Path) -> Iterator[None]:
    """Another process that comes to such a block with the same folder waits until this one has left it, or has ended.

    The lock lies beside the folder, as `<folder>.lock`.
    """
    lock = Path(folder).with_name(Path(folder).name + ".lock")
    lock.parent.mkdir(parents=True, exist_ok=True)
    with lock.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            with stage(f"waiting for another process, which works in {folder}"):
                fcntl.flock(file, fcntl.LOCK_EX)
        yield


def check_file(path: str | Path) -> None:
    """Raises OSError unless the file `path` can be written, or replaced where it is there."""
    if Path(path).is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    check_folder(Path(path).parent)


def write_bytes(path: str | Path, data: bytes) -> None:
    with AtomicWrite(path) as partial:
        partial.write_bytes(data)


def write_text(path: str | Path, text: str) -> None:
    write_bytes(path, text.encode())


def write_json(path: str | Path, data: Any, indent: int | None = None) -> None:
    write_text(path, json.dumps(data, indent=indent) + "\n")


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)

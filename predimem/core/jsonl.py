"""A file of JSON objects, one a line, that survives a crash of its writer: what was added is on the disk."""

from __future__ import annotations

import fcntl
import json
import os
from pathlib import Path
from typing import Any


class FileInUse(ValueError):
    """Another process holds the file."""


class JsonLines:
    """Append-only; opened by one process at a time. Raises FileInUse if another one has it open."""

    def __init__(self, path: Path):
        path.parent.mkdir(parents=True, exist_ok=True)
        self._path = path
        self._file = path.open("ab+", buffering=0)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            self._file.close()
            if isinstance(error, BlockingIOError):
                raise FileInUse(f"{path} is being written by another process") from error
            raise OSError(error.errno, error.strerror, str(path)) from error

    def read(self) -> list[dict[str, Any]]:
        """Every line. A last one that was cut short is removed; any other damage raises ValueError."""
        self._file.seek(0)
        text = self._file.readall()
        whole = text[: text.rfind(b"\n") + 1]
        if whole != text:  # the machine stopped in the middle of a line
            self._file.truncate(len(whole))
        lines = []
        for number, line in enumerate(whole.splitlines(), 1):
            try:
                lines.append(json.loads(line))
            except ValueError as error:
                raise ValueError(f"{self._path} is damaged in line {number} ({error})") from error
        return lines

    def append(self, line: dict[str, Any]) -> None:
        """Returns once the line is on the disk. Raises OSError if it does not get there; then none of it does."""
        before = self._file.seek(0, os.SEEK_END)
        rest = memoryview(json.dumps(line).encode() + b"\n")
        try:
            while rest:
                rest = rest[self._file.write(rest) :]
            os.fsync(self._file.fileno())
        except OSError as error:
            self._file.truncate(before)
            raise OSError(error.errno, error.strerror, str(self._path)) from error

    def clear(self) -> None:
        self._file.truncate(0)

    def close(self) -> None:
        self._file.close()

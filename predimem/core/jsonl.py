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
        self._file = path.open("a+")
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            self._file.close()
            raise FileInUse(f"{path} is being written by another process") from error

    def read(self) -> list[dict[str, Any]]:
        """Every line. A last one that was cut short is removed; any other damage raises ValueError."""
        self._file.seek(0)
        text = self._file.read()
        whole = text[: text.rfind("\n") + 1]
        if whole != text:  # the machine stopped in the middle of a line
            self._file.truncate(len(whole.encode()))
        lines = []
        for number, line in enumerate(whole.splitlines(), 1):
            try:
                lines.append(json.loads(line))
            except json.JSONDecodeError as error:
                raise ValueError(f"{self._path} is damaged in line {number} ({error})") from error
        return lines

    def append(self, line: dict[str, Any]) -> None:
        """Returns once the line is on the disk."""
        self._file.write(json.dumps(line) + "\n")
        self._file.flush()
        os.fsync(self._file.fileno())

    def clear(self) -> None:
        self._file.truncate(0)

    def close(self) -> None:
        self._file.close()

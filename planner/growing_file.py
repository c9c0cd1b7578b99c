"""A file of lines that goes on where an interrupted run stopped writing it."""

from __future__ import annotations

import json
import os
from pathlib import Path
from types import TracebackType
from typing import Any


class GrowingFile:
    """Written under another name, `.partial`, which an exception or a crash leaves as it is; `finish` renames it.

    Beside it, in `.partial.json`, stands what the lines follow from. Where that is the same as now, the whole lines
    that are there are kept, and `lines` is their number. Otherwise, and where nobody knows (None), the file begins
    anew.
    """

    def __init__(self, path: Path, follows_from: Any):
        self._path = path
        self._partial = path.with_name(f"{path.name}.partial")
        self._note = path.with_name(f"{path.name}.partial.json")
        path.parent.mkdir(parents=True, exist_ok=True)
        note = json.dumps(follows_from, sort_keys=True)
        known = follows_from is not None and self._note.is_file() and self._note.read_text() == note
        self.lines, size = _whole_lines(self._partial) if known else (0, 0)
        if size == 0:
            self._partial.unlink(missing_ok=True)
            self._note.write_text(note)
        else:
            os.truncate(self._partial, size)
        self._file = self._partial.open("a")

    def write(self, line: str) -> None:
        self._file.write(line + "\n")

    def finish(self) -> None:
        self._file.close()
        os.replace(self._partial, self._path)
        self._note.unlink()

    def __enter__(self) -> GrowingFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.finish()
        else:
            self._file.close()


def _whole_lines(path: Path) -> tuple[int, int]:
    """How many lines of a file have an end, and how many bytes they take."""
    if not path.is_file():
        return 0, 0
    lines = size = 0
    with path.open("rb") as file:
        for line in file:
            if line.endswith(b"\n"):
                lines, size = lines + 1, size + len(line)
    return lines, size

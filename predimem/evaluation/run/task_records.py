"""The files of a user's own tasks, as results hold them: so an evaluation can be repeated wherever the files are."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from predimem.core.config import ConfigError
from predimem.core.own_code import SUFFIX


def task_record(path: str | Path) -> dict[str, str]:
    """The text of a task file and its hash, as results hold them."""
    content = Path(path).read_bytes()
    return {"sha256": sha256(content).hexdigest(), "text": content.decode()}


def write_task_files(records: Mapping[str, Any], folder: Path, where: str) -> dict[str, str]:
    """Write the task files that results hold (`provenance: task_files`) into `folder`: task -> path.

    where: the results, for messages. Raises ConfigError for a file that was altered in them, and for results of a
    version that kept only its hash.
    """
    files: dict[str, str] = {}
    for task, record in records.items():
        if not isinstance(record, Mapping):
            raise ConfigError(
                f"{where} was made by an earlier version and does not hold the file of the task {task}: play it anew"
            )
        content = record["text"].encode()
        if sha256(content).hexdigest() != record["sha256"]:
            raise ConfigError(f"{where}: the file of the task {task} in it does not match its hash: it was altered")
        path = folder / f"{task}{SUFFIX}"
        path.write_bytes(content)
        files[task] = str(path)
    return files

"""A task in a file of its own: Python that defines TASK, anywhere on disk (docs/guides/own-task.md)."""

from __future__ import annotations

import hashlib
import sys
from functools import lru_cache
from pathlib import Path
from types import ModuleType

from predimem.core.own_code import line_of, words_of
from predimem.envs.arena.task import Task


def load_task(path: str | Path) -> Task:
    """The TASK of a file; the same object while the file stays the same.

    The file is run, like a script of the user's. Raises ValueError for a missing file, for one that cannot
    be run (with the line), and for one whose TASK is no valid `Task`.
    """
    path = Path(path)
    if not path.is_file():
        raise ValueError(f"there is no task file {path}: expected a Python file that defines TASK = Task(...)")
    return _load(path.resolve(), path.read_text())


@lru_cache(maxsize=256)
def _load(path: Path, text: str) -> Task:
    name = f"predimem_task_{hashlib.sha256(str(path).encode()).hexdigest()[:12]}"
    module = ModuleType(name)
    module.__file__ = str(path)
    sys.modules[name] = module  # dataclasses of the file, such as predicates of its own, look their module up
    try:
        exec(compile(text, str(path), "exec"), module.__dict__)
    except Exception as error:
        raise ValueError(f"{path}{line_of(error, path)}: {words_of(error)}") from error
    task = getattr(module, "TASK", None)
    if not isinstance(task, Task):
        others = [key for key, value in vars(module).items() if isinstance(value, Task)]
        hint = f"; it has a Task under the name {others[0]}: call it TASK" if others else ""
        got = "no TASK" if task is None else f"TASK = {task!r}"
        raise ValueError(f"{path}: expected TASK = Task(...), got {got}{hint}")
    return task

"""Classes of a user's own, named in a config as "package.module:Class" or "path/to/file.py:Class"."""

from __future__ import annotations

import functools
import hashlib
import importlib
import importlib.util
import sys
import traceback
from pathlib import Path
from types import ModuleType
from typing import Any

from predimem.core.config import ConfigError


def full_place(place: str, where: str) -> str:
    """`place` with the path of a file in full, so that it means the same in every process and working directory.

    where: the key of the config that states it, for the error. Raises ConfigError unless it has two parts.
    """
    source, _, name = place.rpartition(":")
    if not source or not name.isidentifier():
        raise ConfigError(
            f"{where}: expected a class as 'package.module:Class' or 'path/to/file.py:Class', got {place!r}"
        )
    return f"{Path(source).expanduser().resolve()}:{name}" if source.endswith(".py") else place


def load_own(place: str, where: str) -> Any:
    """What `place` names. Modules are looked for in the working directory, too.

    Raises ConfigError where there is no such file, module or class, or where its code cannot be run.
    """
    source, _, name = full_place(place, where).rpartition(":")
    module = _file_module(source, where) if source.endswith(".py") else _module(source, where)
    if not hasattr(module, name):
        classes = [value for value in vars(module).values() if isinstance(value, type)]
        made = [value.__name__ for value in classes if value.__module__ == module.__name__]
        raise ConfigError(f"{where}: {source} has no {name!r}; the classes in it are: {', '.join(made) or 'none'}")
    return getattr(module, name)


def code_hash(place: str) -> str:
    """SHA-256 of the file that holds the class, as hexadecimal digits. It has to be one that `load_own` can load."""
    module = sys.modules[load_own(place, "class").__module__]
    return hashlib.sha256(Path(str(module.__file__)).read_bytes()).hexdigest()


@functools.cache
def _file_module(source: str, where: str) -> ModuleType:
    path = Path(source)
    if not path.is_file():
        raise ConfigError(f"{where}: there is no file {path}; name the file where it lies now")
    _look_in(path.parent)
    name = f"predimem_own_{path.stem}_{hashlib.sha256(source.encode()).hexdigest()[:8]}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses and pickle look a class's module up by its name
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[name]
        raise ConfigError(f"{where}: {_what_happened(error, path)}") from error
    return module


def _module(source: str, where: str) -> ModuleType:
    _look_in(Path.cwd())
    try:
        return importlib.import_module(source)
    except ModuleNotFoundError as error:
        if error.name is None or not (source == error.name or source.startswith(f"{error.name}.")):
            raise ConfigError(f"{where}: {source} imports {error.name}, which is not installed") from error
        raise ConfigError(
            f"{where}: there is no module {source!r}, neither installed nor in {Path.cwd()}; a file is named by its "
            "path: 'path/to/file.py:Class'"
        ) from None
    except Exception as error:
        raise ConfigError(f"{where}: {_what_happened(error, None)}") from error


def _look_in(folder: Path) -> None:
    """Modules that are found nowhere else are looked for in `folder`."""
    if str(folder) not in sys.path:
        sys.path.append(str(folder))


def _what_happened(error: Exception, path: Path | None) -> str:
    if isinstance(error, SyntaxError):
        return f"{error.filename}, line {error.lineno}: {error.msg}"
    frames = traceback.extract_tb(error.__traceback__)
    frame = next((f for f in reversed(frames) if path is None or f.filename == str(path)), frames[-1])
    return f"{frame.filename}, line {frame.lineno}: {type(error).__name__}: {error}"

"""Code that a user names in a config: `my_planner.py:make_planner`, or `package.module:NAME` of a package."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import os
import sys
import traceback
from pathlib import Path
from types import ModuleType
from typing import Any

from predimem.core.config import ConfigError

SUFFIX = ".py"
EXPECTED = "expected file.py:NAME or package.module:NAME"


class OwnCodeError(ConfigError):
    """Code that cannot be found or run; the message says where and why."""


def is_place(name: str) -> bool:
    """Whether `name` says where code is, and is no name of a folder of weights."""
    return ":" in name


def place_beside(place: str, folder: Path) -> str:
    """The absolute place of code in a file of `folder`; any other place, or name of weights, as it is."""
    file, _, name = place.rpartition(":")
    beside = folder / file
    return f"{beside.resolve()}:{name}" if file.endswith(SUFFIX) and beside.is_file() else place


def full_place(place: str, where: str) -> str:
    """`place` with the path of a file in full, so that it means the same in every process and working directory.

    where: the key of the config that states it, for the error. Raises OwnCodeError unless it has two parts.
    """
    source, _, name = place.rpartition(":")
    if not source or not name.isidentifier():
        raise OwnCodeError(f"{where}: {EXPECTED}, got {place!r}")
    return f"{Path(source).expanduser().resolve()}:{name}" if source.endswith(SUFFIX) else place


def load_object(place: str, where: str) -> Any:
    """What stands at a place. The file is run once in a process; its folder and the working directory may be imported
    from.

    where: the key of the config that states the place, for errors. Raises OwnCodeError where there is no such file,
    module or name, and where the code cannot be run.
    """
    source, _, name = full_place(place, where).rpartition(":")
    try:
        module = load_file(source) if source.endswith(SUFFIX) else _import(source)
    except OwnCodeError as error:
        raise OwnCodeError(f"{where}: {error}") from error
    try:
        return getattr(module, name)
    except AttributeError:
        own = [key for key, value in vars(module).items() if getattr(value, "__module__", None) == module.__name__]
        defined = ", ".join(own) or "nothing"
        raise OwnCodeError(f"{where}: {source} defines no {name!r}; it defines: {defined}") from None


def load_file(path: str | Path) -> ModuleType:
    """The module of a Python file, whose name follows from its path. Raises OwnCodeError for a missing file and for
    one that cannot be run, with the line."""
    given, path = path, Path(path).resolve()
    name = f"{path.stem}_{hashlib.sha256(str(path).encode()).hexdigest()[:12]}"
    if name in sys.modules:
        return sys.modules[name]
    if not path.is_file():
        raise OwnCodeError(f"there is no file {given}")
    _import_from(str(path.parent))
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses of the file look their module up
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[name]
        raise OwnCodeError(f"{path}{line_of(error, path)}: {words_of(error)}") from error
    return module


def code_hash(place: str) -> str:
    """SHA-256 of the file that holds a place's code, the first 16 hexadecimal digits. Raises OwnCodeError."""
    source = place.rpartition(":")[0]
    path = source if source.endswith(SUFFIX) else _import(source).__file__
    if path is None or not Path(path).is_file():
        raise OwnCodeError(f"{place!r}: {source} has no file of its own")
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()[:16]


def line_of(error: BaseException, path: Path) -> str:
    """Where in the file it went wrong, as ", line 7"; empty where that is not known."""
    if isinstance(error, SyntaxError) and error.filename == str(path):
        return f", line {error.lineno}"
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
    return f", line {lines[-1]}" if lines else ""


def words_of(error: BaseException) -> str:
    """What the error says, with its kind unless it is a plain ValueError, whose message says it all."""
    text = error.msg if isinstance(error, SyntaxError) else str(error)
    return text if type(error) is ValueError else f"{type(error).__name__}: {text}"


def _import(name: str) -> ModuleType:
    _import_from(os.getcwd())
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not (name == error.name or name.startswith(f"{error.name}.")):
            raise OwnCodeError(f"{name} imports {error.name}, which is not installed") from error
        raise OwnCodeError(
            f"there is no module {name!r}, neither installed nor in {os.getcwd()}; a file is named by its path: "
            "path/to/file.py:NAME"
        ) from None
    except Exception as error:
        raise OwnCodeError(f"{name}: {words_of(error)}") from error


def _import_from(folder: str) -> None:
    if folder not in sys.path:
        sys.path.append(folder)

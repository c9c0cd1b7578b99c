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

SUFFIX = ".py"
EXPECTED = "expected file.py:NAME or package.module:NAME"


class OwnCodeError(ValueError):
    """Code that cannot be found or run; the message says where and why."""


def is_place(name: str) -> bool:
    """Whether `name` says where code is, and is no name of a folder of weights."""
    return ":" in name


def place_beside(place: str, folder: Path) -> str:
    """The absolute place of code in a file of `folder`; any other place, or name of weights, as it is."""
    file, _, name = place.rpartition(":")
    beside = folder / file
    return f"{beside.resolve()}:{name}" if file.endswith(SUFFIX) and beside.is_file() else place


def load_object(place: str) -> Any:
    """What stands at a place. The file is run once in a process; its folder and the working directory may be imported
    from. Raises OwnCodeError."""
    module_name, _, name = place.rpartition(":")
    if not module_name or not name:
        raise OwnCodeError(f"{place!r}: {EXPECTED}")
    module = load_file(module_name) if module_name.endswith(SUFFIX) else _import(module_name, place)
    try:
        return getattr(module, name)
    except AttributeError:
        own = [key for key, value in vars(module).items() if getattr(value, "__module__", None) == module.__name__]
        raise OwnCodeError(f"{module_name} defines no {name!r}; it defines: {', '.join(own) or 'nothing'}") from None


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
    module_name = place.rpartition(":")[0]
    path = module_name if module_name.endswith(SUFFIX) else _import(module_name, place).__file__
    if path is None or not Path(path).is_file():
        raise OwnCodeError(f"{place!r}: {module_name} has no file of its own")
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


def _import(name: str, place: str) -> ModuleType:
    _import_from(os.getcwd())
    try:
        return importlib.import_module(name)
    except Exception as error:
        raise OwnCodeError(f"{place!r}: {words_of(error)}; {EXPECTED}") from error


def _import_from(folder: str) -> None:
    if folder not in sys.path:
        sys.path.append(folder)

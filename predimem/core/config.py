"""YAML to frozen dataclasses: unknown keys are errors, nested dataclasses are built by their type."""

from __future__ import annotations

import dataclasses
import json
import types
import typing
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

import yaml

from predimem.core.suggestions import did_you_mean

T = TypeVar("T")
PACKAGE = Path(__file__).parents[1]  # holds configs/, in the wheel as files, in a checkout as a link
FORMER_FILES = {
    "datagen_practice.yaml": "datagen_dagger.yaml",
    "datagen_scenes.yaml": "datagen_vision_data.yaml",
    "datagen_skills.yaml": "datagen_actor_data.yaml",
}
SHORT_FORMS = {"memory": "implementation"}  # `memory: file.py:Class` says `memory: {implementation: file.py:Class}`


class ConfigError(ValueError):
    """A config that cannot be used: says which key, what was expected and what came."""


def load_config(cls: type[T], path: str | Path) -> T:
    """Read a YAML file into the dataclass `cls`. Raises ConfigError on unknown keys or wrong types."""
    return from_dict(cls, read_yaml(path), where=str(path))


def read_yaml(path: str | Path) -> dict[str, Any]:
    """The mapping in a YAML file, {} where it is empty. Raises ConfigError, also for anything but a mapping.

    It may say `extends: other.yaml`, a file relative to its own: it then only states what differs. Mappings are
    merged key by key, anything else replaces what it stands in for. A path such as `configs/datagen.yaml` that is
    not below the working directory is the file of that name that comes with the package, also by its former name; so
    is one after `extends`.
    """
    path = Path(path)
    return _read(_shipped(path) or path, ())


def _shipped(path: Path) -> Path | None:
    """The file that comes with the package, if `path` is called like one and is not there."""
    shipped = PACKAGE / path.with_name(FORMER_FILES.get(path.name, path.name))
    return shipped if not path.is_file() and path.parts[:1] == ("configs",) and shipped.is_file() else None


def _read(path: Path, before: tuple[Path, ...]) -> dict[str, Any]:
    if path.resolve() in before:
        chain = " -> ".join(str(p) for p in (*before, path))
        raise ConfigError(f"{path} extends itself: {chain}")
    if not path.is_file():
        extended = f", which {before[-1]} extends" if before else ""
        raise ConfigError(f"config file not found: {path}{extended} (those that come with PrediMem are in configs/)")
    try:
        data = yaml.safe_load(path.read_text())
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is not valid YAML: {error}") from error
    if data is None:
        return {}
    if not isinstance(data, dict):
        raise ConfigError(f"{path}: expected a mapping, got a {type(data).__name__}")
    if "extends" not in data:
        return data
    parent = data.pop("extends")
    if not isinstance(parent, str):
        raise ConfigError(f"{path}: extends: expected the name of a YAML file, got {parent!r}")
    extended = path.parent / parent
    if not extended.is_file():
        extended = _shipped(Path(parent)) or extended
    return merged(_read(extended, (*before, path.resolve())), data)


def merged(base: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """`base` with `changes`, mappings merged key by key."""
    result = _in_full(base)
    for key, value in _in_full(changes).items():
        old = result.get(key)
        result[key] = merged(old, value) if isinstance(old, dict) and isinstance(value, dict) else value
    return result


def from_dict(cls: type[T], data: Any, where: str = "config") -> T:
    """Build the dataclass `cls` from plain dicts and lists, checking names and types as it goes.

    A dataclass whose fields were renamed has `FORMER_NAMES` (old name -> field): old files are read, too. One whose
    fields follow from one another has a static method `complete_data`: it gets the mapping, and returns it with the
    values that were left out because they follow, or that were said in former words.
    """
    if not isinstance(data, dict):
        raise ConfigError(f"{where}: expected a mapping for {cls.__name__}, got {type(data).__name__}")
    data = _in_full(renamed(data, getattr(cls, "FORMER_NAMES", {}), where))
    complete = getattr(cls, "complete_data", None)
    data = data if complete is None else complete(data)
    fields = {f.name: f for f in dataclasses.fields(cls)}  # type: ignore[arg-type]
    unknown = sorted(map(str, set(data) - set(fields)))
    if unknown:
        meant = did_you_mean(unknown[0], fields)
        raise ConfigError(f"{where}: unknown key {unknown[0]!r}; {cls.__name__} knows: {', '.join(fields)}{meant}")
    hints = typing.get_type_hints(cls)
    values = {name: _convert(hints[name], value, f"{where}: {name}") for name, value in data.items()}
    try:
        return cls(**values)
    except TypeError as error:
        raise ConfigError(f"{where}: {error}") from error


def renamed(data: dict[str, Any], former_names: Mapping[str, str], where: str) -> dict[str, Any]:
    """`data` with today's names of keys. Raises ConfigError where a thing is said by its old and by its new name."""
    for old, new in former_names.items():
        if old in data and new in data:
            raise ConfigError(f"{where}: {old!r} is the former name of {new!r}; give one of them")
    return {former_names.get(key, key): value for key, value in data.items()}


def _in_full(data: dict[str, Any]) -> dict[str, Any]:
    """`data` with the mappings that `SHORT_FORMS` allows to be said in one word."""
    words = {key for key, value in data.items() if key in SHORT_FORMS and isinstance(value, str)}
    return {key: {SHORT_FORMS[key]: value} if key in words else value for key, value in data.items()}


def tasks_as_text(data: dict[str, Any]) -> dict[str, Any]:
    """A mapping whose `tasks` may be numbers, `tasks: [4]`, with text in their place."""
    tasks = data.get("tasks")
    if not isinstance(tasks, list | tuple):
        return data
    return data | {"tasks": [str(task) if type(task) is int else task for task in tasks]}


def in_todays_words(cls: type, data: dict[str, Any]) -> dict[str, Any]:
    """A config that an earlier version wrote down (`to_dict`), with today's names and defaults for what came later.

    What cannot be read is returned as it is: it is another config in any case.
    """
    try:
        return to_dict(from_dict(cls, data))
    except (ConfigError, ValueError):
        return data


def to_dict(config: Any) -> dict[str, Any]:
    """The config as JSON data, as it is written into results and beside weights: tuples become lists."""
    data: dict[str, Any] = _with_lists(dataclasses.asdict(config))
    return data


def _with_lists(data: Any) -> Any:
    if isinstance(data, dict):
        return {key: _with_lists(value) for key, value in data.items()}
    return [_with_lists(value) for value in data] if isinstance(data, tuple | list) else data


def differences(old: Any, new: Any, where: str = "") -> list[str]:
    """Where two pieces of JSON data differ, as "a.b (was 1, is 2)"."""
    if isinstance(old, dict) and isinstance(new, dict):
        keys = [*new, *(key for key in old if key not in new)]
        return [
            text
            for key in keys
            if old.get(key) != new.get(key)
            for text in differences(old.get(key), new.get(key), f"{where}.{key}" if where else str(key))
        ]
    return [f"{where} (was {_short(old)}, is {_short(new)})"]


def _convert(hint: Any, value: Any, where: str) -> Any:
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        if value is None and type(None) in args:
            return None
        choices = [a for a in args if a is not type(None)]
        is_list = isinstance(value, list | tuple)
        return _convert(
            next((a for a in choices if (typing.get_origin(a) is tuple) == is_list), choices[0]), value, where
        )
    if dataclasses.is_dataclass(hint):
        return from_dict(typing.cast(type, hint), value, where)
    if origin is tuple:
        if not isinstance(value, list | tuple):
            raise ConfigError(f"{where}: expected a list, got {value!r}")
        item = args[0] if args else Any
        return tuple(_convert(item, v, f"{where}[{i}]") for i, v in enumerate(value))
    if origin is dict:
        if not isinstance(value, dict):
            raise ConfigError(f"{where}: expected a mapping, got {value!r}")
        return {k: _convert(args[1], v, f"{where}.{k}") for k, v in value.items()}
    if origin is typing.Literal:
        if value not in args:
            raise ConfigError(f"{where}: expected one of {', '.join(map(repr, args))}, got {value!r}")
        return value
    if hint is Any:
        return value
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if hint is float and isinstance(value, str):  # YAML reads 1e-5 as a string
        try:
            return float(value)
        except ValueError:
            pass
    if not isinstance(value, hint) or (hint is not bool and isinstance(value, bool)):
        raise ConfigError(f"{where}: expected {hint.__name__}, got {value!r}")
    return value


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 40 else text[:37] + "…"

"""A planner that a config names by its place: `planner: my_planner.py:MyPlanner`."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from memory_bank import MemoryConfig
from predimem.core.config import from_dict, to_dict
from predimem.core.interfaces import Planner
from predimem.core.own_code import OwnCodeError, load_object


def make_own_planner(place: str, options: Mapping[str, Any]) -> Planner:
    """Calls the class or function at `place` with `options`. Raises OwnCodeError for options that it does not take
    and where it gives no planner, and what it raises itself."""
    check_own_planner(place, options)
    planner = _factory(place)(**options)
    if not isinstance(planner, Planner):
        raise OwnCodeError(f"planner {place} gave {planner!r}, which has no method plan(snapshot)")
    return planner


def check_own_planner(place: str, options: Mapping[str, Any]) -> None:
    """Raises OwnCodeError where the code at `place` cannot be used, or does not take these options: all that can be
    said before a planner is made."""
    memory_of(place, {})
    try:
        inspect.signature(_factory(place)).bind(**options)
    except TypeError as error:
        raise OwnCodeError(f"planner {place}: planner_options: {error}; got {dict(options)}") from error


def memory_of(place: str, changes: Mapping[str, Any]) -> MemoryConfig:
    """The memory that the planner at `place` wants: the attribute `memory` of its class or function, else the default.

    It is asked before a planner is made, because a server makes its planner in another process.

    changes: what differs from it. Raises OwnCodeError, and ConfigError for an unknown field.
    """
    memory = getattr(_factory(place), "memory", MemoryConfig())
    if not isinstance(memory, MemoryConfig):
        raise OwnCodeError(f"planner {place}: memory: expected a MemoryConfig, got {memory!r}")
    return from_dict(MemoryConfig, to_dict(memory) | dict(changes), "memory")


def weights_of(place: str, options: Mapping[str, Any]) -> tuple[Path, ...]:
    """The folders of weights that the planner at `place` reads, as the function `weights_used` of its class tells for
    the same options; none where it has no such function."""
    told = getattr(_factory(place), "weights_used", None)
    return () if told is None else tuple(told(**options))


def _factory(place: str) -> Any:
    factory = load_object(place, "planner")
    if not callable(factory):
        raise OwnCodeError(f"planner {place}: expected a class or a function that makes a planner, got {factory!r}")
    return factory

"""The stages of a training: commands of `predimem`, each with a whole config of its own."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from datagen.command import read_data_config
from planner.prompt import follow_memory
from predimem.core.config import ConfigError, merged

DATA, PLANNER, ACTOR = "data", "planner", "actor"  # kinds of stages
VISION_DATA, ACTOR_DATA, DAGGER = "vision-data", "actor-data", "dagger"  # names of stages, the last one with a number
FORMER_STAGES = {"scenes": VISION_DATA, "skills": ACTOR_DATA, "practice": DAGGER}


class Training(Protocol):
    """What all stages of one training share: its folder, its processes of simulators, and the tasks of its data, where
    none are those of the data's configs."""

    @property
    def out(self) -> str: ...
    @property
    def workers(self) -> int: ...
    @property
    def tasks(self) -> tuple[str, ...]: ...


@dataclass(frozen=True)
class Stage:
    """One command of a training.

    name, kind: what `--only` knows it by.
    command: the arguments of `predimem`.
    config_path, config: the command's config, as plain data, has to be written to this path first.
    result: the folder that it leaves.
    needs: the names of the stages before it.
    weights: the name under which the result is placed, if it is weights.
    """

    name: str
    kind: str
    command: tuple[str, ...]
    config_path: Path
    config: dict[str, Any]
    result: Path
    needs: tuple[str, ...] = ()
    weights: str | None = None


def data_stage(
    training: Training, name: str, recipe: str, changes: dict[str, Any], needs: tuple[str, ...] = ()
) -> Stage:
    """The data of the config `recipe`, but for `changes`."""
    folder = Path(training.out) / "data" / name
    changes = ({"tasks": list(training.tasks)} if training.tasks else {}) | changes | {"out": str(folder)}
    command = ("datagen", "--retry-errors", "--workers", str(training.workers))
    return command_stage(training, name, DATA, command, read_data_config(recipe), changes, folder, needs)


def command_stage(
    training: Training,
    name: str,
    kind: str,
    command: tuple[str, ...],
    recipe: dict[str, Any],
    changes: dict[str, Any],
    result: Path,
    needs: tuple[str, ...] = (),
    weights: str | None = None,
) -> Stage:
    """The command with the config `recipe` (plain data), but for `changes`."""
    path = Path(training.out) / "configs" / f"{name}.yaml"
    data = merged(recipe, changes)
    data = follow_memory(data) if kind == PLANNER else data
    return Stage(name, kind, (*command, "--config", str(path)), path, data, result, needs, weights)


def choose_stages(stages: Sequence[Stage], only: Collection[str]) -> list[Stage]:
    """Those that `only` names, by name (also a former one) or by kind, and what they need; all if it names none."""
    known = {stage.name: stage for stage in stages}
    only = [name if name in known else todays_stage(name) for name in only]
    for name in only:
        if name not in known and name not in (DATA, PLANNER, ACTOR):
            raise ConfigError(f"no stage {name!r}; there are: {DATA}, {PLANNER}, {ACTOR} (kinds), {', '.join(known)}")
    wanted = [stage.name for stage in stages if not only or stage.name in only or stage.kind in only]
    chosen: set[str] = set()
    while wanted:
        name = wanted.pop()
        if name not in chosen:
            chosen.add(name)
            wanted += known[name].needs
    return [stage for stage in stages if stage.name in chosen]


def todays_stage(name: str) -> str:
    """The name of the stage that an earlier version called so: `practice-1` was `dagger-1`."""
    first, *number = name.split("-")
    return "-".join((FORMER_STAGES.get(first, first), *number))

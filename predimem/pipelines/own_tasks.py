"""What a training needs for tasks of one's own: their words, and the weights that it goes on from."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from datagen.decompose.agreement import own_task
from predimem.core.config import ConfigError
from predimem.core.own_code import SUFFIX
from predimem.core.weight_files import weights_folder
from predimem.envs.arena.task import Task
from predimem.envs.arena.tasks import TASKS
from predimem.envs.arena.vocabulary import instructions, labels


@dataclass(frozen=True)
class StartConfig:
    """The weights that a training goes on from.

    weights: the folder that holds them; null: the shipped ones.
    planner, actor: their names in it.
    rehearse: tasks that the weights know, of which new data are made beside those of the new tasks, so that they are
    not forgotten. rehearse_episodes: seeds of each of them.
    """

    weights: str | None = None
    planner: str = "arena-planner"
    actor: str = "arena-actor"
    rehearse: tuple[str, ...] = ()
    rehearse_episodes: int = 4

    @property
    def planner_folder(self) -> Path:
        """Raises WeightsError where there are no such weights."""
        return weights_folder(self.weights, self.planner)

    @property
    def actor_folder(self) -> Path:
        """Raises WeightsError where there are no such weights."""
        return weights_folder(self.weights, self.actor)


def start_of(start: StartConfig | None, tasks: Sequence[str], go_on: bool, weights: str | None) -> StartConfig | None:
    """Where a training starts that was asked for with `--continue` (go_on) and `--weights`, or by its config (start).

    Raises ConfigError for a training that goes on without tasks, and for weights of one that does not go on.
    """
    if start is None and not go_on:
        if weights is not None:
            raise ConfigError("--weights says where a training goes on from: give --continue as well")
        return None
    if not tasks:
        raise ConfigError("--continue trains on for some tasks: name them, such as --tasks my_task.py")
    start = start or StartConfig()
    return start if weights is None else replace(start, weights=weights)


def located(tasks: Iterable[str]) -> tuple[str, ...]:
    """Task files by their absolute paths, so that every stage finds them; other names as they are."""
    return tuple(str(Path(task).resolve()) if task.endswith(SUFFIX) else task for task in tasks)


def with_words_of(recipe: dict[str, Any], tasks: Sequence[str]) -> dict[str, Any]:
    """Changes of a planner's recipe (plain data) by which its tokenizer knows the instructions and labels of those
    tasks that are not the arena's own; none where all are, or where the recipe lists no labels.

    Raises ValueError for a faulty task file.
    """
    known = recipe.get("base", {}).get("tokenizer", {})
    own: list[Task] = [task for task in map(own_task, tasks) if task not in TASKS]
    if not own or "subtasks" not in known:
        return {}
    words = {"instructions": instructions(own), "subtasks": labels(own)}
    return {"base": {"tokenizer": {k: list(dict.fromkeys([*known.get(k, ()), *new])) for k, new in words.items()}}}

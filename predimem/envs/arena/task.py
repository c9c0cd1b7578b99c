"""A task of the arena: a scene, and the variants of its hidden state, one of which the seed draws."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from predimem.core.subtask_labels import with_target
from predimem.envs.arena.subtasks import Subtask
from predimem.envs.arena.task_checks import check_task
from predimem.envs.arena.variant import Variant

Category = Literal["transferring", "occlusion", "counting", "sequence", "long"]
CATEGORIES: tuple[Category, ...] = ("transferring", "occlusion", "counting", "sequence")  # of the 26 tasks
LONG: Category = "long"  # several of them in one episode, see `predimem.envs.arena.long`

__all__ = ["CATEGORIES", "LONG", "Category", "Task", "Variant", "memory_ratio"]


@dataclass(frozen=True)
class Task:
    """One task of the arena.

    task_id, title, category: those of tasks 1 to 26 are as released with RoboMemArena.
    name: of the Gymnasium id.
    objects, fixtures: what is in the scene besides the kitchen.
    variants: all values of the hidden state, each as likely as the others.
    drawn: for the docs, what the variants differ in; empty where there is one variant.
    remember: for the docs, what its memory-dependent subtasks draw on; empty where there are none.
    same_order: whether all variants have the same skills in the same order, as all but long tasks do.

    The labels of subtasks get the target behind them where the words that were given leave it open.
    Raises ValueError for a task that could not be built or judged (`task_checks`).
    """

    task_id: int
    name: str
    title: str
    category: Category
    objects: tuple[str, ...]
    variants: tuple[Variant, ...]
    fixtures: tuple[str, ...] = ()
    drawn: str = ""
    remember: str = ""
    same_order: bool = True

    def __post_init__(self) -> None:
        check_task(self, (*CATEGORIES, LONG))
        object.__setattr__(self, "variants", _with_targets(self.variants))

    @property
    def env_id(self) -> str:
        return f"predimem/Arena-{self.name}-v0"

    @property
    def stages(self) -> int:
        return len(self.variants[0].subtasks)

    @property
    def budgets_steps(self) -> tuple[int, ...]:
        """For each stage of the first variant the control steps that it may take."""
        return self.variants[0].budgets_steps

    @property
    def horizon(self) -> int:
        """Control steps after which an episode is truncated."""
        return max(sum(variant.budgets_steps) for variant in self.variants)


def _with_targets(variants: tuple[Variant, ...]) -> tuple[Variant, ...]:
    """The variants, with the target in every label that stands for several subtasks."""
    meant: dict[str, set[tuple[str, str, str]]] = {}
    for subtask in (s for variant in variants for s in variant.subtasks):
        meant.setdefault(subtask.label, set()).add(subtask.motion)

    def told(subtask: Subtask) -> Subtask:
        is_open = len(meant[subtask.label]) > 1
        return replace(subtask, label=with_target(subtask.label, subtask.target)) if is_open else subtask

    return tuple(replace(v, subtasks=tuple(map(told, v.subtasks))) for v in variants)


def memory_ratio(tasks: tuple[Task, ...]) -> tuple[int, int]:
    """(memory-dependent subtasks, all subtasks), as in RoboMemArena (arXiv:2605.10921), Eq. 9.

    The variants of a task agree in both.
    """
    subtasks = [s for task in tasks for s in task.variants[0].subtasks]
    return sum(s.memory is not None for s in subtasks), len(subtasks)

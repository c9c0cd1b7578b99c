"""A task of the arena: a scene, and the variants of its hidden state, one of which the seed draws."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal

from datagen.arena.evidence import evidence_stages
from datagen.arena.predicates import Poured, Pouring, Predicate
from datagen.arena.subtasks import Skill, Subtask, undoes
from datagen.arena.task_checks import check_task
from predimem.labels import with_target

Category = Literal["transferring", "occlusion", "counting", "sequence"]
CATEGORIES: tuple[Category, ...] = ("transferring", "occlusion", "counting", "sequence")

# Control steps that a subtask may take, about twice what the scripted skills need.
BUDGET_STEPS = {Skill.MOVE: 140, Skill.PLACE: 240, Skill.POUR: 320, Skill.OPEN: 360, Skill.CLOSE: 300}


@dataclass(frozen=True)
class Variant:
    """One value of the hidden state.

    instruction: what the robot is told. subtasks: in order; each one's `done` is one stage.
    start: object -> the place that it starts in; the other objects of the task start on the table.
    mats: places with a coloured mat on their floor (a mark, nothing that can be touched).
    """

    instruction: str
    subtasks: tuple[Subtask, ...]
    start: Mapping[str, str] = field(default_factory=dict)
    mats: tuple[str, ...] = ()

    @cached_property
    def lasting(self) -> tuple[Predicate | None, ...]:
        """For each stage what must still hold at the end: nothing where a later subtask undoes it."""
        return tuple(
            None if any(undoes(later, subtask) for later in self.subtasks[i + 1 :]) else subtask.done.lasting()
            for i, subtask in enumerate(self.subtasks)
        )

    @cached_property
    def evidence(self) -> tuple[tuple[int, ...], ...]:
        """For each stage the earlier ones of which something has to be remembered (`evidence_stages`)."""
        return tuple(evidence_stages(self.subtasks, i) for i in range(len(self.subtasks)))

    @cached_property
    def pour(self) -> Pouring | None:
        """What counts as pouring; None where nothing is poured."""
        poured = [s.done for s in self.subtasks if isinstance(s.done, Poured)]
        return Pouring(poured[0].object, poured[0].target) if poured else None


@dataclass(frozen=True)
class Task:
    """task_id, title, category: of tasks 1 to 26 as released with RoboMemArena. name: of the Gymnasium id.

    objects, fixtures: what is in the scene besides the kitchen. variants: all values of the hidden
    state; each is as likely. For the docs: drawn: what the variants differ in, empty where there is
    one; remember: what its memory-dependent subtasks draw on, empty where there are none.
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

    def __post_init__(self) -> None:
        check_task(self, CATEGORIES)
        object.__setattr__(self, "variants", _with_targets(self.variants))

    @property
    def env_id(self) -> str:
        return f"predimem/Arena-{self.name}-v0"

    @property
    def stages(self) -> int:
        return len(self.variants[0].subtasks)

    @property
    def budgets_steps(self) -> tuple[int, ...]:
        """For each stage the control steps that it may take."""
        return tuple(BUDGET_STEPS[s.skill] for s in self.variants[0].subtasks)

    @property
    def horizon(self) -> int:
        """Control steps after which an episode is truncated."""
        return sum(self.budgets_steps)


def _with_targets(variants: tuple[Variant, ...]) -> tuple[Variant, ...]:
    """The variants, with the target in every label that stands for several subtasks."""
    meant: dict[str, set[tuple[str, str, str]]] = {}
    for subtask in (s for variant in variants for s in variant.subtasks):
        meant.setdefault(subtask.label, set()).add((subtask.skill, subtask.target, subtask.object))

    def told(subtask: Subtask) -> Subtask:
        is_open = len(meant[subtask.label]) > 1
        return replace(subtask, label=with_target(subtask.label, subtask.target)) if is_open else subtask

    return tuple(replace(v, subtasks=tuple(map(told, v.subtasks))) for v in variants)


def memory_ratio(tasks: tuple[Task, ...]) -> tuple[int, int]:
    """(memory-dependent subtasks, all subtasks): 002 Eq. 9. The variants of a task agree in both."""
    subtasks = [s for task in tasks for s in task.variants[0].subtasks]
    return sum(s.memory is not None for s in subtasks), len(subtasks)

"""One value of a task's hidden state: what the robot is told, and the subtasks that follow from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from predimem.envs.arena.evidence import evidence_stages
from predimem.envs.arena.predicates import Poured, Pouring, Predicate
from predimem.envs.arena.subtasks import Skill, Subtask, undoes
from predimem.envs.arena.visits import Pause, Visit

# Control steps that a subtask may take, about twice what the scripted skills need.
BUDGET_STEPS = {Skill.MOVE: 140, Skill.PLACE: 240, Skill.POUR: 320, Skill.OPEN: 360, Skill.CLOSE: 300}


@dataclass(frozen=True)
class Variant:
    """One value of the hidden state.

    instruction: what the robot is told.
    subtasks: the subtasks in order; the `done` of each is one stage.
    start: object -> the place that it starts in; the other objects of the task start on the table.
    mats: places with a coloured mat on their floor (a mark, nothing that can be touched).
    pauses, visits: what happens without the robot; nothing in the 26 tasks.
    """

    instruction: str
    subtasks: tuple[Subtask, ...]
    start: Mapping[str, str] = field(default_factory=dict)
    mats: tuple[str, ...] = ()
    pauses: tuple[Pause, ...] = ()
    visits: tuple[Visit, ...] = ()

    @cached_property
    def budgets_steps(self) -> tuple[int, ...]:
        """For each stage the control steps that it may take, with the pause before it."""
        pauses = {pause.stage: pause.steps for pause in self.pauses}
        return tuple(BUDGET_STEPS[subtask.skill] + pauses.get(i, 0) for i, subtask in enumerate(self.subtasks))

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

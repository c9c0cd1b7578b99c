"""Who says what is to be done next: the truth, disturbed or in a planner's stead, behind the interface of a planner.

A voice is told by the control thread, at each control step, which subtask is right, and is asked as a planner in the
runtime's own thread.
"""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from typing import Any, Protocol

import numpy as np

from datagen.dagger.config import DisturbanceConfig, TruthSpellConfig
from datagen.dagger.faulty_policy import MINUTE_STEPS, Event, steps_of
from datagen.dagger.labels import same_deed
from datagen.dagger.oracle import OracleActor
from datagen.experts.scripted.pick import EMPTY_GAP_M
from predimem.core.interfaces import Planner
from predimem.core.types import MemorySnapshot, Plan
from predimem.envs.arena.robot.arm import CLOSED
from predimem.envs.arena.subtasks import Skill, Subtask

USUAL_STEPS = {Skill.MOVE: 65, Skill.PLACE: 90, Skill.POUR: 110, Skill.OPEN: 125, Skill.CLOSE: 105}  # of a motion
EARLY_SHARE = (0.3, 1.0)  # of that, after which the next subtask is said too early
AFTER_POUR_STEPS = 20  # a pour that is still asked for long after it has ended is done once more
POUR_SPELL_STEPS = 10  # too short to tilt


class Voice(Planner, Protocol):
    """One for each episode. events: what it said wrong so far, or, of a planner, when it was not it that spoke."""

    events: list[Event]

    def hear(self, step: int, index: int, overtime_steps: int) -> None:
        """Before `plan` is asked at `step`: the index of the subtask that is right, and for how long it has taken
        longer than it may (negative: how long it still may)."""
        ...


class DisturbedTruth:
    """Implements `Voice`: says what is right; late, too early, and now and then something else."""

    def __init__(self, env: Any, actor: OracleActor, config: DisturbanceConfig, rng: np.random.Generator):
        """env: an `ArenaEnv` of one world that has been reset."""
        self._actor, self._config, self._rng = actor, config, rng
        self._subtasks = env.variant().subtasks
        self._others = [s for v in env.task.variants for s in v.subtasks]
        self._said: dict[int, str] = {}
        self._index, self._mean = -1, 0  # what is right, and which it means to say: that comes later
        self._switch_step = 0
        self._early: tuple[int, int] | None = None  # when the next subtask will be said, and for how long
        self._spell: tuple[int, str] | None = None  # until when what is said instead
        self.events: list[Event] = []

    def plan(self, snapshot: MemorySnapshot) -> Plan:
        return Plan(snapshot.episode_id, snapshot.step, self._said[snapshot.step])

    def hear(self, step: int, index: int, overtime_steps: int) -> None:
        if index != self._index:
            self._move_on(step, index)
        if step >= self._switch_step:
            self._mean = index
        if self._spell is not None and step >= self._spell[0]:
            self._spell = None
        if self._spell is None:
            self._begin_spell(step, index)
        self._said[step] = self._spell[1] if self._spell else self._subtasks[self._mean].label

    def _move_on(self, step: int, index: int) -> None:
        config, rng = self._config, self._rng
        late = steps_of(config.late_s, rng) if index and rng.random() < config.late_share else 0
        if index and self._subtasks[index - 1].skill is Skill.POUR:
            late = min(late, AFTER_POUR_STEPS)
        if late:
            self.events.append(Event("late switch", step, step + late))
        self._index, self._switch_step, self._early = index, step + late, None
        if index + 1 < len(self._subtasks) and rng.random() < config.premature_share:
            share = rng.uniform(*EARLY_SHARE)
            after = round(USUAL_STEPS[self._subtasks[index].skill] * share)
            self._early = step + late + after, steps_of(config.premature_s, rng)
        self._spell = None  # what was said too early is right by now

    def _begin_spell(self, step: int, index: int) -> None:
        following = self._subtasks[min(index + 1, len(self._subtasks) - 1)]
        if self._early is not None and step >= self._early[0] and self._harmless(following):
            self._speak(step, self._early[1], following, "premature")
            self._early = None
        elif self._rng.random() < self._config.wrong_per_minute / MINUTE_STEPS:
            right, length = self._subtasks[index], steps_of(self._config.wrong_s, self._rng)
            wrong = [s for s in self._others if not same_deed(s, right) and self._harmless(s)]
            if wrong:
                self._speak(step, length, wrong[int(self._rng.integers(len(wrong)))], "wrong")

    def _speak(self, step: int, length: int, subtask: Subtask, kind: str) -> None:
        if subtask.skill is Skill.POUR:
            length = min(length, POUR_SPELL_STEPS)
        self._spell = step + length, subtask.label
        self.events.append(Event(kind, step, step + length))

    def _harmless(self, subtask: Subtask) -> bool:
        """Not what would begin by letting fall what the hand holds."""
        held = self._held()
        return not held or held == subtask.object

    def _held(self) -> str:
        arm = self._actor.arm
        if arm.gripper != CLOSED or arm.finger_gap_m <= EMPTY_GAP_M:
            return ""
        doing = self._actor.doing
        return doing.object if doing is not None else ""


class PlannerOrTruth:
    """Implements `Voice`: a planner, in whose stead now and then the truth speaks; what it nominates always counts."""

    def __init__(
        self,
        planner: Planner,
        labels: tuple[str, ...],
        config: TruthSpellConfig,
        rng: np.random.Generator,
    ):
        """labels: of the episode's subtasks, as they are spoken."""
        self._planner, self._labels, self._config, self._rng = planner, labels, config, rng
        self._instead: dict[int, str | None] = {}
        self._spell_end, self._rescue = 0, -1  # the stage that the truth is helping through
        self._answers: deque[tuple[int, ...]] = deque()  # nominations of plans that have not arrived yet
        self.events: list[Event] = []

    def plan(self, snapshot: MemorySnapshot) -> Plan:
        plan = self._planner.plan(snapshot)
        self._answers.append(plan.keyframe_steps)
        truth = self._instead[snapshot.step]
        return plan if truth is None else replace(plan, subtask=truth)

    def arrived(self) -> tuple[int, ...]:
        """What the plan that has just arrived nominated, as absolute steps."""
        return self._answers.popleft()

    def hear(self, step: int, index: int, overtime_steps: int) -> None:
        config = self._config
        if config.rescue_after_s is not None and overtime_steps >= config.rescue_after_s * 20 and self._rescue != index:
            self._rescue = index
            self.events.append(Event("rescue", step, step + 1))
        if step >= self._spell_end and self._rng.random() < self._rate():
            self._spell_end = step + steps_of(config.truth_s, self._rng)
            self.events.append(Event("truth", step, self._spell_end))
        speaks = step < self._spell_end or self._rescue == index
        self._instead[step] = self._labels[index] if speaks else None

    def _rate(self) -> float:
        """Of beginnings, for each control step in which the planner speaks."""
        share, mean_steps = self._config.share, sum(self._config.truth_s) / 2 * 20
        return share / (1 - share) / mean_steps

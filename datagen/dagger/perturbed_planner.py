"""Where the subtasks of an episode come from: a perturbed oracle planner, or a learned planner that the oracle helps.

A source implements `Planner`. The control thread tells it the label of each control step, and the runtime asks it for
plans in a thread of its own.
"""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from typing import Any, Protocol

import numpy as np

from datagen.dagger.config import DisturbanceConfig, OracleSpellConfig
from datagen.dagger.faulty_policy import MINUTE_STEPS, Event, steps_of
from datagen.dagger.low_level_policy import TrackedPolicy
from datagen.experts.scripted.pick import EMPTY_GAP_M
from predimem.core.interfaces import Planner
from predimem.core.types import MemorySnapshot, Plan
from predimem.envs.arena.robot.arm import CLOSED
from predimem.envs.arena.scene.environment import CONTROL_HZ
from predimem.envs.arena.subtasks import Skill, Subtask

USUAL_STEPS = {Skill.MOVE: 65, Skill.PLACE: 90, Skill.POUR: 110, Skill.OPEN: 125, Skill.CLOSE: 105}  # of a motion
EARLY_SHARE = (0.3, 1.0)  # of that, after which the next subtask is named too early
AFTER_POUR_STEPS = 20  # a pour that is still asked for long after it has ended is done once more
POUR_SPELL_STEPS = 10  # too short to tilt


class SubtaskSource(Planner, Protocol):
    """Names the subtasks of one episode.

    events: what it named wrongly so far; of a learned planner, when the oracle planner took over from it.
    """

    events: list[Event]

    def update(self, step: int, label: int, overtime_steps: int) -> None:
        """To be called at every `step`, before `plan` is asked.

        label: the index of the subtask that should be named.
        overtime_steps: for how long it has taken longer than it may; negative: how long it still may.
        """
        ...


class PerturbedOracle:
    """Implements `SubtaskSource`: names the label; but late, too early, and now and then another subtask."""

    def __init__(self, env: Any, policy: TrackedPolicy, config: DisturbanceConfig, rng: np.random.Generator):
        """env: an `ArenaEnv` of one world that has been reset."""
        self._env, self._policy, self._config, self._rng = env, policy, config, rng
        self._subtasks = env.variant().subtasks
        self._after_pauses = {pause.stage for pause in env.variant().pauses}
        self._others = [s for v in env.task.variants for s in v.subtasks]
        self._said: dict[int, str] = {}
        self._label, self._meant = -1, 0  # the label, and what it means to name: that follows later
        self._switch_step = 0
        self._early: tuple[int, int] | None = None  # when the next subtask will be named, and for how long
        self._spell: tuple[int, str] | None = None  # until when which label is given instead
        self.events: list[Event] = []

    def plan(self, snapshot: MemorySnapshot) -> Plan:
        return Plan(snapshot.episode_id, snapshot.step, self._said[snapshot.step])

    def update(self, step: int, label: int, overtime_steps: int) -> None:
        if label != self._label:
            self._move_on(step, label)
        if step >= self._switch_step:
            self._meant = label
        if self._spell is not None and step >= self._spell[0]:
            self._spell = None
        if self._spell is None:
            self._begin_spell(step, label)
        self._said[step] = self._spell[1] if self._spell else self._subtasks[self._meant].label

    def _move_on(self, step: int, label: int) -> None:
        config, rng = self._config, self._rng
        late, kind = self._waits_on(label), "waited on"
        if not late:
            late, kind = self._late(label), "late switch"
        if late:
            self.events.append(Event(kind, step, step + late))
        self._label, self._switch_step, self._early = label, step + late, None
        leads_on = label + 1 < len(self._subtasks) and not self._env.due.again  # else what follows was done before
        if leads_on and rng.random() < config.premature_share:
            share = rng.uniform(*EARLY_SHARE)
            after = round(USUAL_STEPS[self._subtasks[label].skill] * share)
            self._early = step + late + after, steps_of(config.premature_s, rng)
        self._spell = None  # what was named too early is the label by now

    def _late(self, label: int) -> int:
        """After how many control steps it notices that `label` is due."""
        late = steps_of(self._config.late_s, self._rng) if label and self._rng.random() < self._config.late_share else 0
        if label and self._subtasks[self._meant].skill is Skill.POUR:
            late = min(late, AFTER_POUR_STEPS)
        return late

    def _waits_on(self, label: int) -> int:
        """The same, where `label` is due because a pause is over: 0 unless it waits on."""
        share = self._config.waits_on_share
        if not share or label not in self._after_pauses or self._rng.random() >= share:
            return 0
        return steps_of(self._config.waits_on_s, self._rng)

    def _begin_spell(self, step: int, label: int) -> None:
        following = self._subtasks[min(label + 1, len(self._subtasks) - 1)]
        if self._early is not None and step >= self._early[0] and self._harmless(following):
            self._name(step, self._early[1], following, "premature")
            self._early = None
        elif self._rng.random() < self._config.wrong_per_minute / MINUTE_STEPS:
            due, length = self._subtasks[label], steps_of(self._config.wrong_s, self._rng)
            wrong = [s for s in self._others if s.motion != due.motion and self._harmless(s)]
            if wrong:
                self._name(step, length, wrong[int(self._rng.integers(len(wrong)))], "wrong")

    def _name(self, step: int, length: int, subtask: Subtask, kind: str) -> None:
        if subtask.skill is Skill.POUR:
            length = min(length, POUR_SPELL_STEPS)
        self._spell = step + length, subtask.label
        self.events.append(Event(kind, step, step + length))

    def _harmless(self, subtask: Subtask) -> bool:
        """Whether it would not begin by letting fall what the gripper holds."""
        held = self._held()
        return not held or held == subtask.object

    def _held(self) -> str:
        arm = self._policy.arm
        if arm.gripper != CLOSED or arm.finger_gap_m <= EMPTY_GAP_M:
            return ""
        doing = self._policy.doing
        return doing.object if doing is not None else ""


class PlannerOrOracle:
    """Implements `SubtaskSource`: a planner from which now and then the oracle planner takes over. The keyframes that
    the planner nominates count even then."""

    def __init__(
        self,
        planner: Planner,
        labels: tuple[str, ...],
        config: OracleSpellConfig,
        rng: np.random.Generator,
    ):
        """labels: of the episode's subtasks, as the oracle planner names them."""
        self._planner, self._labels, self._config, self._rng = planner, labels, config, rng
        self._instead: dict[int, str | None] = {}
        self._spell_end, self._rescue = 0, -1  # the stage that the oracle planner helps through
        self._answers: deque[tuple[int, ...]] = deque()  # nominations of plans that have not arrived yet
        self.events: list[Event] = []

    def plan(self, snapshot: MemorySnapshot) -> Plan:
        plan = self._planner.plan(snapshot)
        self._answers.append(plan.keyframe_steps)
        instead = self._instead[snapshot.step]
        return plan if instead is None else replace(plan, subtask=instead)

    def arrived(self) -> tuple[int, ...]:
        """What the plan that has just arrived nominated, as absolute steps."""
        return self._answers.popleft()

    def update(self, step: int, label: int, overtime_steps: int) -> None:
        config = self._config
        self._rescue = label if label == self._rescue else -1
        if (
            config.rescue_after_s is not None
            and overtime_steps >= config.rescue_after_s * CONTROL_HZ
            and self._rescue != label
        ):
            self._rescue = label
            self.events.append(Event("rescue", step, step + 1))
        if step >= self._spell_end and self._rng.random() < self._rate():
            self._spell_end = step + steps_of(config.oracle_s, self._rng)
            self.events.append(Event("oracle", step, self._spell_end))
        helps = step < self._spell_end or self._rescue == label
        self._instead[step] = self._labels[label] if helps else None

    def _rate(self) -> float:
        """The probability with which a spell begins, at each control step at which the planner itself is heard."""
        share, mean_steps = self._config.share, sum(self._config.oracle_s) / 2 * CONTROL_HZ
        return share / (1 - share) / mean_steps

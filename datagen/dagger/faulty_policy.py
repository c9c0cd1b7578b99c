"""A low-level policy that fails now and then: it stands still, closes on nothing, and lets things fall."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from datagen.dagger.config import DisturbanceConfig, Range
from datagen.dagger.low_level_policy import TrackedPolicy
from predimem.core.types import ActionChunk, Observation
from predimem.envs.arena.objects import OBJECTS
from predimem.envs.arena.predicates import Held
from predimem.envs.arena.robot.arm import CLOSED, OPEN
from predimem.envs.arena.scene.environment import CONTROL_HZ
from predimem.envs.arena.subtasks import Skill

DROP_AFTER_S = (0.3, 2.0)  # of a thing's being lifted
DROP_STEPS = 8  # for the fingers to open, and to close on nothing
MINUTE_STEPS = 60 * CONTROL_HZ


@dataclass(frozen=True)
class Event:
    """What went wrong at control steps start <= t < end."""

    kind: str
    start: int
    end: int


class FaultyPolicy:
    """Implements `Policy` around a policy that makes none of these mistakes itself. One is made for each episode.

    events: what it did wrong so far.
    """

    def __init__(self, env: Any, policy: TrackedPolicy, config: DisturbanceConfig, rng: np.random.Generator):
        """env: an `ArenaEnv` of one world that has been reset."""
        self._env, self._policy, self._config, self._rng = env, policy, config, rng
        self._paused_until = 0
        self._gripper, self._missing = OPEN, False
        self._carried = ""
        self._drop: tuple[int, int] | None = None  # the control steps in which the gripper will let go of it
        self.events: list[Event] = []

    def infer(self, observation: Observation, subtask: str) -> ActionChunk:
        step = observation.step
        if step >= self._paused_until and self._rng.random() < self._config.pauses_per_minute / MINUTE_STEPS:
            self._paused_until = step + steps_of(self._config.pause_s, self._rng)
            self.events.append(Event("pause", step, self._paused_until))
        chunk = (
            self._policy.still(observation) if step < self._paused_until else self._policy.infer(observation, subtask)
        )
        if self._misses(step) or self._drops(step):
            actions = chunk.actions.copy()
            actions[:, -1] = OPEN
            chunk = replace(chunk, actions=actions)
        return chunk

    def _misses(self, step: int) -> bool:
        """From the moment at which the gripper should close on something until it is to open again."""
        before, self._gripper = self._gripper, self._policy.arm.gripper
        if self._gripper == CLOSED and before == OPEN:
            doing = self._policy.doing
            grasps = doing is not None and doing.skill is not Skill.CLOSE
            self._missing = grasps and bool(self._rng.random() < self._config.missed_share)
            if self._missing:
                self.events.append(Event("missed grasp", step, step + 1))
        self._missing = self._missing and self._gripper == CLOSED
        return self._missing

    def _drops(self, step: int) -> bool:
        if self._drop is not None and step >= self._drop[0]:
            if step == self._drop[0]:
                self.events.append(Event("drop", *self._drop))
            if step < self._drop[1]:
                return True
            self._drop = None
        held = self._held()
        if held != self._carried:
            self._carried, self._drop = held, None
            if held and not OBJECTS[held].pourable and self._rng.random() < self._config.dropped_share:
                start = step + steps_of(DROP_AFTER_S, self._rng)
                self._drop = start, start + DROP_STEPS
        return False

    def _held(self) -> str:
        """What the gripper has lifted, "" if nothing."""
        doing = self._policy.doing
        if not self._config.dropped_share or doing is None or not doing.object or self._policy.arm.gripper == OPEN:
            return ""
        return doing.object if bool(Held(doing.object)(self._env.world())[0]) else ""


def steps_of(seconds: Range, rng: np.random.Generator) -> int:
    """Control steps, drawn evenly."""
    return round(rng.uniform(*seconds) * CONTROL_HZ)

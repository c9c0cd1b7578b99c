"""An episode that comes after earlier sessions, as `predimem.core.interfaces.Environment` with a history."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from predimem.core.types import History, Observation, PastSession, StepResult
from predimem.envs.arena import suite
from predimem.envs.arena.achievements import AHEAD, ELSEWHERE
from predimem.envs.arena.task import Task
from predimem.envs.interference.conditions import Condition, Draw, draw
from predimem.envs.interference.families import FAMILIES, Family
from predimem.envs.interference.recordings import past_session
from predimem.envs.interference.sessions import SessionPool, seed_of

WRONG = (ELSEWHERE, AHEAD)  # deeds after which an episode has failed: the robot does what another lesson would ask for


class InterferenceEnvironment:
    """The tests of one family under one condition. The seed alone determines an episode and its history.

    An episode ends with the test's success, with its failure, or with the first deed that another value of the lesson
    would have asked for (`wrong: ...`), since a robot that opens one drawer after the other has not remembered.
    """

    def __init__(
        self, family: Family, condition: Condition, sessions: SessionPool, pool: int, control_mode: str, image_px: int
    ):
        """pool: how many recorded sessions of each value histories are drawn from."""
        self.camera_every: int | None = None
        self.family, self.condition = family, condition
        self._sessions, self._pool = sessions, pool
        self._control_mode, self._image_px = control_mode, image_px
        self._environments: dict[str, suite.ArenaEnvironment] = {}
        self._now: suite.ArenaEnvironment | None = None
        self._draw: Draw | None = None

    @property
    def simulation(self) -> Any:
        """The simulation itself, for agents that know the true state; another one after each reset."""
        return self._inner.simulation

    @property
    def instruction(self) -> str:
        return self.family.instruction

    @property
    def action_dim(self) -> int:
        return self._inner.action_dim

    @property
    def horizon(self) -> int:
        return self._inner.horizon

    @property
    def control_hz(self) -> float:
        return suite.CONTROL_HZ

    @property
    def value(self) -> int:
        """What counts in the episode that was reset last: the index into the family's answers."""
        assert self._draw is not None, "reset() comes first"
        return self._draw.value

    @property
    def history(self) -> History:
        assert self._draw is not None, "reset() comes first"
        sessions = tuple(self._session(index) for index in range(len(self._draw.sessions)))
        return History(sessions, self._draw.robot, self._draw.person)

    def reset(self, seed: int) -> Observation:
        self._draw = draw(self.family, self.condition, seed, self._pool)
        single = len(self.family.tests) == 1
        task = self.family.tests[0 if single else self.value]
        self._now = self._environment(task)
        self._now.camera_every = self.camera_every
        return self._now.reset(seed_of(task, self.value if single else 0, self._draw.test_seed))

    def step(self, action: np.ndarray) -> StepResult:
        result = self._inner.step(action)
        wrong = [line for line in str(result.info["undue"]).splitlines() if line.partition(":")[0] in WRONG]
        if not wrong or result.success:
            return result
        return replace(result, terminated=True, info={**result.info, "failure": f"wrong: {wrong[0]}"})

    def hold_action(self, last: np.ndarray | None) -> np.ndarray:
        return self._inner.hold_action(last)

    def close(self) -> None:
        for environment in self._environments.values():
            environment.close()
        self._environments, self._now = {}, None

    @property
    def _inner(self) -> suite.ArenaEnvironment:
        if self._now is None:  # somebody asks before the first reset; all tests of a family are alike in that
            self._now = self._environment(self.family.tests[0])
        return self._now

    def _environment(self, task: Task) -> suite.ArenaEnvironment:
        if task.name not in self._environments:
            made = suite.make(task, self._control_mode, self._image_px, images=True, inverse_kinematics="predimem")
            self._environments[task.name] = made
        return self._environments[task.name]

    def _session(self, index: int) -> PastSession:
        assert self._draw is not None
        planned = self._draw.sessions[index]
        recorded = self._sessions.lesson(FAMILIES[planned.family], planned.value, planned.number)
        return past_session(index, planned, recorded)

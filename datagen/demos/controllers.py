"""Who moves the arm in a demonstration: the expert, disturbed, or an actor that is to learn from its mistakes."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from predimem.core.config import ConfigError
from predimem.core.interfaces import Policy
from predimem.core.types import Observation
from predimem.core.weight_files import model_folder
from predimem.envs.mikasa.families.family import Family, State


class Controller(Protocol):
    """It is made anew for each episode."""

    def action(self, observation: Observation, state: State, subtask: str) -> np.ndarray:
        """float32 [7] in [-1, 1]. subtask: the true one."""
        ...


@dataclass(frozen=True)
class PerturbationConfig:
    """What makes visited states diverse; subtask labels and `Alternatives` are always the expert's.

    noise_share: share of episodes with normal noise of `noise_std` (1 = 0.1 m) on the commanded
    translation, in each subtask until the TCP is first within `noise_until_m` of its goal, so that it can come to rest.
    noise_steps: where it is given, the noise ends after so many steps of each subtask instead, however close the TCP
        has come, so that the arm is also seen beside what it was to reach.
    noise_hold_steps: so many steps have the same noise. One that holds moves the arm farther than one that changes.
    detour_share: share in which the arm begins each subtask with `detour_steps` of another one.
    """

    noise_share: float = 0.35
    noise_std: float = 0.35
    noise_until_m: float = 0.03
    noise_steps: int | None = None
    noise_hold_steps: int = 1
    detour_share: float = 0.15
    detour_steps: int = 5

    def __post_init__(self) -> None:
        for name in ("noise_share", "detour_share"):
            if not 0 <= getattr(self, name) <= 1:
                raise ConfigError(f"{name} must be in [0, 1], got {getattr(self, name)}")
        for name in ("noise_std", "noise_until_m", "detour_steps"):
            if getattr(self, name) < 0:
                raise ConfigError(f"{name} must be >= 0, got {getattr(self, name)}")
        if self.noise_hold_steps < 1 or (self.noise_steps is not None and self.noise_steps < 1):
            raise ConfigError(
                f"noise_steps and noise_hold_steps must be >= 1, got {self.noise_steps} and {self.noise_hold_steps}"
            )


@dataclass(frozen=True)
class Perturbation:
    """What one episode got: drawn from its task and seed alone. 0 where it was left undisturbed."""

    noise_std: float
    detour_steps: int


class Disturbance:
    """The controller of a family, disturbed as was drawn."""

    def __init__(
        self, family: Family, task: str, drawn: Perturbation, config: PerturbationConfig, rng: np.random.Generator
    ) -> None:
        self._family, self._subtasks = family, tuple(family.subtasks(task))
        self._drawn, self._config, self._rng = drawn, config, rng
        self._subtask, self._moving_steps, self._noisy = "", 0, True
        self._noise = np.zeros(3)
        self._detour: str | None = None

    def action(self, observation: Observation, state: State, subtask: str) -> np.ndarray:
        goal = self._family.goal_m(state, subtask)
        if subtask != self._subtask:
            self._subtask, self._moving_steps, self._noisy = subtask, 0, True
        if goal is None:
            return self._family.act(state, subtask)
        if self._moving_steps == 0:
            self._detour = self._other(state, subtask) if self._drawn.detour_steps else None
        on_detour = self._detour is not None and self._moving_steps < self._drawn.detour_steps
        self._moving_steps += 1
        action = self._family.act(state, self._detour if on_detour and self._detour else subtask)
        self._noisy = self._noisy and not self._is_enough(float(np.linalg.norm(goal - state["tcp_m"])))
        if self._noisy:
            if (self._moving_steps - 1) % self._config.noise_hold_steps == 0:
                self._noise = self._drawn.noise_std * self._rng.normal(size=3)
            action[:3] += self._noise
        return np.clip(action, -1.0, 1.0).astype(np.float32)

    def _is_enough(self, away_m: float) -> bool:
        """Whether the noise ends here. away_m: how far the TCP is from its goal."""
        if self._config.noise_steps is not None:
            return self._moving_steps > self._config.noise_steps
        return away_m < self._config.noise_until_m

    def _other(self, state: State, subtask: str) -> str | None:
        """Another subtask that moves the arm."""
        others = [s for s in self._subtasks if s != subtask and self._moves(state, s)]
        return str(self._rng.choice(others)) if others else None

    def _moves(self, state: State, subtask: str) -> bool:
        return self._family.valid(state, subtask) and self._family.goal_m(state, subtask) is not None


@dataclass(frozen=True)
class DriverConfig:
    """An actor moves the arm, told the true subtask, and the expert labels the states that it comes to (DAgger: Ross,
    Gordon and Bagnell, 2011).

    actor: the folder of its weights.
    execute_steps: control steps from one look of the actor to the next.
    subtask_steps: it moves the arm for so many steps of each subtask. Then the expert does, so that an actor that is
        stuck comes to what is next.
    delay_steps: both hear of a new subtask up to so many steps late, drawn anew for each, as from a planner. So the arm
        is seen at rest where a subtask has ended.
    latency_steps: control steps from a look of the actor to the first action of its chunk that is executed, as
        `s1_latency_steps` in an evaluation. With one step more, the arm overshoots farther.
    """

    actor: str
    execute_steps: int = 2
    subtask_steps: int = 40
    delay_steps: int = 0
    latency_steps: int = 0

    def __post_init__(self) -> None:
        for name in ("delay_steps", "latency_steps"):
            if getattr(self, name) < 0:
                raise ConfigError(f"driver.{name} must be >= 0, got {getattr(self, name)}")
        for name in ("execute_steps", "subtask_steps"):
            if getattr(self, name) < 1:
                raise ConfigError(f"driver.{name} must be >= 1, got {getattr(self, name)}")

    def resolved(self) -> DriverConfig:
        """With a path that holds in other working directories."""
        return replace(self, actor=str(model_folder(self.actor).resolve()))


class Driver:
    """A `Controller`: an actor, and the expert where it takes too long."""

    def __init__(self, policy: Policy, family: Family, config: DriverConfig, rng: np.random.Generator) -> None:
        self._policy, self._family, self._config, self._rng = policy, family, config, rng
        self._due, self._told_at = "", 0  # the true subtask, and the step at which it is told
        self._subtask, self._subtask_steps = "", 0
        self._chunks: deque[tuple[int, np.ndarray]] = deque()  # the steps of their looks; the first one is executed

    def action(self, observation: Observation, state: State, subtask: str) -> np.ndarray:
        if subtask != self._due:
            delay = self._rng.integers(self._config.delay_steps, endpoint=True) if self._due else 0
            self._due, self._told_at = subtask, observation.step + int(delay)
        if self._subtask != self._due and observation.step >= self._told_at:
            self._subtask, self._subtask_steps = self._due, 0
        self._subtask_steps += 1
        if observation.step % self._config.execute_steps == 0:
            self._chunks.append((observation.step, self._policy.infer(observation, self._subtask).actions))
        while len(self._chunks) > 1 and observation.step >= self._chunks[1][0] + self._config.latency_steps:
            self._chunks.popleft()
        look_step, chunk = self._chunks[0]
        age = observation.step - look_step
        if age < self._config.latency_steps or self._subtask_steps > self._config.subtask_steps:
            return self._family.act(state, self._subtask)
        return np.clip(chunk[min(age, len(chunk) - 1)], -1.0, 1.0).astype(np.float32)

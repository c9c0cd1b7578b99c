"""Playing one episode with the scripted expert and writing down everything that training may use."""

from __future__ import annotations

import copy
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from datagen.demos.mikasa_facts import facts_of
from datagen.demos.thrift import ThriftConfig, image_steps, only_fresh, sparse_frames
from datagen.keyframes import KeyframeConfig, extract_keyframes
from predimem.core.config import ConfigError
from predimem.core.episodes import Episode, SubtaskSpan
from predimem.core.interfaces import Environment
from predimem.core.scene_facts import KEY
from predimem.core.types import Observation
from predimem.envs.mikasa.families.family import Family, State
from predimem.envs.mikasa.families.rollout import alternatives

STEPS_AFTER_SUCCESS = 4
REPLAY_TOLERANCE_M = 0.005  # PhysX keeps contacts over a reset, which changes the last digits


class PrivilegedEnvironment(Environment, Protocol):
    """An environment whose task belongs to a family, and that tells the true state with its cameras."""

    @property
    def family(self) -> Family | None: ...

    look_steps: frozenset[int] | None  # the steps at which images are rendered; None: as the environment likes

    def privileged(self) -> dict[str, Any]: ...


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


@dataclass
class _Played:
    """The lists that an episode is made of, one entry per control step."""

    observations: list[Observation] = field(default_factory=list)
    states: list[dict[str, Any]] = field(default_factory=list)
    actions: list[np.ndarray] = field(default_factory=list)
    subtasks: list[str] = field(default_factory=list)
    success: bool = False


def record_episode(
    environment: PrivilegedEnvironment,
    task: str,
    seed: int,
    perturbation: PerturbationConfig | None = None,
    keyframes: KeyframeConfig | None = None,
    thrift: ThriftConfig | None = None,
) -> Episode:
    """Play `seed` with the expert, perturbed as the seed says, until the environment ends the episode or a few steps
    after its success.

    thrift: which images are rendered; None: all. To know which, the episode is first played without images, and then
    its actions once more.

    keyframes: how the arm's motion tells keyframes; None takes the family's word for what has to be remembered.

    `actions` are those that were commanded (float32 in [-1, 1]); `metadata` says how it was perturbed and what the
    family notes. Raises ValueError where no script plays the task.
    """
    family = environment.family
    if family is None:
        raise ValueError(f"no script plays {task}, so that there are no demonstrations of it")
    config, thrift = perturbation or PerturbationConfig(), thrift or ThriftConfig()
    rng = np.random.default_rng([seed, zlib.crc32(task.encode())])
    drawn = Perturbation(
        noise_std=config.noise_std if rng.random() < config.noise_share else 0.0,
        detour_steps=config.detour_steps if rng.random() < config.detour_share else 0,
    )

    def disturbed() -> Controller:
        return _Disturbance(family, task, drawn, config, copy.deepcopy(rng)).action

    recorded = None
    if thrift.every > 1:
        try:
            recorded = _played_twice(environment, family, seed, disturbed(), keyframes, thrift)
        finally:
            environment.look_steps = None
    if recorded is None:
        played = _play(environment, family, seed, disturbed())
        labels = _annotated(environment, family, played, keyframes)
        recorded = played, labels, frozenset(range(len(played.actions)))
    played, labels, looked = recorded
    return _episode(environment, family, task, seed, played, drawn, labels, looked)


def spans(labels: list[str]) -> tuple[SubtaskSpan, ...]:
    """The label of every step as spans of equal labels."""
    starts = [t for t in range(len(labels)) if t == 0 or labels[t] != labels[t - 1]]
    ends = [*starts[1:], len(labels)]
    return tuple(SubtaskSpan(a, b, labels[a]) for a, b in zip(starts, ends, strict=True))


def evidence_keyframes(evidence: Sequence[str]) -> tuple[int, ...]:
    """The first step of each piece of evidence; evidence: [T], as `Family.evidence` gives it."""
    return tuple(evidence.index(piece) for piece in dict.fromkeys(evidence) if piece)


class _Disturbance:
    """The controller of a family, disturbed as was drawn."""

    def __init__(
        self, family: Family, task: str, drawn: Perturbation, config: PerturbationConfig, rng: np.random.Generator
    ) -> None:
        self._family, self._subtasks = family, tuple(family.subtasks(task))
        self._drawn, self._config, self._rng = drawn, config, rng
        self._subtask, self._moving_steps, self._noisy = "", 0, True
        self._noise = np.zeros(3)
        self._detour: str | None = None

    def action(self, state: State, subtask: str) -> np.ndarray:
        """float32 [7] in [-1, 1]."""
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


Controller = Callable[[State, str], np.ndarray]  # from the state and the true subtask to the action


def _play(environment: PrivilegedEnvironment, family: Family, seed: int, controller: Controller) -> _Played:
    played = _Played()
    observation = environment.reset(seed)
    steps_left = environment.horizon
    while steps_left:
        state = environment.privileged()
        subtask = family.subtask(state)
        action = controller(state, subtask)
        played.observations.append(observation)
        played.states.append(state)
        played.actions.append(action)
        played.subtasks.append(subtask)
        result = environment.step(action)
        steps_left = min(steps_left - 1, STEPS_AFTER_SUCCESS) if played.success else steps_left - 1
        observation, played.success = result.observation, result.success
        if result.terminated or result.truncated:
            break
    return played


Labels = tuple[tuple[SubtaskSpan, ...], tuple[int, ...]]  # the subtasks and the keyframes of an episode


def _played_twice(
    environment: PrivilegedEnvironment,
    family: Family,
    seed: int,
    controller: Controller,
    keyframes: KeyframeConfig | None,
    thrift: ThriftConfig,
) -> tuple[_Played, Labels, frozenset[int]] | None:
    """An episode that was first played without images, its labels, and the steps at which it has images; None where
    the simulator goes another way the second time."""
    environment.look_steps = frozenset()
    blind = _play(environment, family, seed, controller)
    labels = _annotated(environment, family, blind, keyframes)
    environment.look_steps = looked = image_steps(len(blind.actions), *labels, thrift)
    played = _Played(actions=blind.actions, states=blind.states, subtasks=blind.subtasks)
    observation = environment.reset(seed)
    for step, action in enumerate(blind.actions):
        if np.abs(observation.state - blind.observations[step].state)[:3].max() > REPLAY_TOLERANCE_M:
            return None
        played.observations.append(observation)
        result = environment.step(action)
        observation, played.success = result.observation, result.success
    return played, labels, looked


def _annotated(
    environment: PrivilegedEnvironment, family: Family, played: _Played, keyframes: KeyframeConfig | None
) -> Labels:
    if keyframes is None:
        return spans(played.subtasks), evidence_keyframes([family.evidence(state) for state in played.states])
    tcp_m = np.stack([state["tcp_m"] for state in played.states])
    opening_m = np.array([observation.state[-1] for observation in played.observations])
    return spans(played.subtasks), extract_keyframes(tcp_m, opening_m, environment.control_hz, keyframes)


def _episode(
    environment: PrivilegedEnvironment,
    family: Family,
    task: str,
    seed: int,
    played: _Played,
    drawn: Perturbation,
    labels: Labels,
    looked: frozenset[int],
) -> Episode:
    observations, states = played.observations, played.states
    first = states[0]
    sensed = np.stack([o.state for o in observations])
    return Episode(
        benchmark="mikasa",
        task=task,
        seed=seed,
        instruction=environment.instruction,
        control_hz=environment.control_hz,
        success=played.success,
        images={name: sparse_frames([o.images[name] for o in observations], looked) for name in observations[0].images},
        state=sensed,
        actions=np.stack(played.actions),
        subtasks=labels[0],
        keyframes=labels[1],
        goal=family.goal(first),
        alternatives=only_fresh(alternatives(family, states, family.subtasks(task)), looked),
        metadata={
            **family.notes(first),
            "noise_std": drawn.noise_std,
            "detour_steps": drawn.detour_steps,
            KEY: facts_of(family, [states[step] for step in sorted(looked)]).as_json(),
        },
    )

"""Playing one episode with the scripted expert and writing down everything that training may use."""

from __future__ import annotations

import copy
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from datagen.demos.controllers import Controller, Disturbance, Driver, DriverConfig, Perturbation, PerturbationConfig
from datagen.demos.mikasa_facts import facts_of
from datagen.demos.thrift import ThriftConfig, image_steps, only_fresh, sparse_frames
from datagen.keyframes import KeyframeConfig, extract_keyframes
from predimem.core.episodes import Episode, SubtaskSpan
from predimem.core.interfaces import Environment, Policy
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
    family = _family_of(environment, task)
    config, thrift = perturbation or PerturbationConfig(), thrift or ThriftConfig()
    rng = np.random.default_rng([seed, zlib.crc32(task.encode())])
    drawn = Perturbation(
        noise_std=config.noise_std if rng.random() < config.noise_share else 0.0,
        detour_steps=config.detour_steps if rng.random() < config.detour_share else 0,
    )

    def disturbed() -> Controller:
        return Disturbance(family, task, drawn, config, copy.deepcopy(rng))

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
    how = {"noise_std": drawn.noise_std, "detour_steps": drawn.detour_steps}
    return _episode(environment, family, task, seed, played, how, labels, looked)


def record_driven_episode(
    environment: PrivilegedEnvironment,
    task: str,
    seed: int,
    policy: Policy,
    driver: DriverConfig,
    keyframes: KeyframeConfig | None = None,
    thrift: ThriftConfig | None = None,
) -> Episode:
    """The same for an episode in which an actor moves the arm, and the expert only says what it would have done.

    thrift: images are rendered `every` so many steps, as often as the actor looks or more often, and not `around`
    anything, because what comes next is not known. What a keyframe shows may be gone at the actor's next look, so that
    the episode is played again up to the last keyframe at which it did not look. One that cannot be seen again, because
    the simulator goes another way, is left out.
    """
    family = _family_of(environment, task)
    every = (thrift or ThriftConfig()).every
    looks = range(0, environment.horizon + 1, every)
    environment.look_steps = frozenset(looks)
    try:
        rng = np.random.default_rng([seed, zlib.crc32(task.encode())])
        played = _play(environment, family, seed, Driver(policy, family, driver, rng))
    finally:
        environment.look_steps = None
    labels = _annotated(environment, family, played, keyframes)
    looked = frozenset(step for step in looks if step < len(played.actions))
    missing = frozenset(labels[1]) - looked
    if missing:
        looked |= _look_again(environment, seed, played, missing)
    labels = labels[0], tuple(step for step in labels[1] if step in looked)
    how = {
        "noise_std": 0.0,
        "detour_steps": 0,
        "driver_steps": driver.subtask_steps,
        "delay_steps": driver.delay_steps,
        "latency_steps": driver.latency_steps,
    }
    return _episode(environment, family, task, seed, played, how, labels, looked)


def _look_again(
    environment: PrivilegedEnvironment, seed: int, played: _Played, steps: frozenset[int]
) -> frozenset[int]:
    """Render these steps by playing the same actions again: those at which the simulator goes the same way."""
    environment.look_steps, rendered = steps, set[int]()
    try:
        observation = environment.reset(seed)
        for step in range(max(steps) + 1):
            if not _alike(environment.privileged(), played.states[step]):
                break
            if step in steps:
                played.observations[step] = observation
                rendered.add(step)
            observation = environment.step(played.actions[step]).observation
    finally:
        environment.look_steps = None
    return frozenset(rendered)


def _family_of(environment: PrivilegedEnvironment, task: str) -> Family:
    if environment.family is None:
        raise ValueError(f"no script plays {task}, so that there are no demonstrations of it")
    return environment.family


def spans(labels: list[str]) -> tuple[SubtaskSpan, ...]:
    """The label of every step as spans of equal labels."""
    starts = [t for t in range(len(labels)) if t == 0 or labels[t] != labels[t - 1]]
    ends = [*starts[1:], len(labels)]
    return tuple(SubtaskSpan(a, b, labels[a]) for a, b in zip(starts, ends, strict=True))


def evidence_keyframes(evidence: Sequence[str]) -> tuple[int, ...]:
    """The first step of each piece of evidence; evidence: [T], as `Family.evidence` gives it."""
    return tuple(evidence.index(piece) for piece in dict.fromkeys(evidence) if piece)


def _play(environment: PrivilegedEnvironment, family: Family, seed: int, controller: Controller) -> _Played:
    played = _Played()
    observation = environment.reset(seed)
    steps_left = environment.horizon
    while steps_left:
        state = environment.privileged()
        subtask = family.subtask(state)
        action = controller.action(observation, state, subtask)
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
        if not _alike(environment.privileged(), blind.states[step]):
            return None
        played.observations.append(observation)
        result = environment.step(action)
        observation, played.success = result.observation, result.success
    return (played, labels, looked) if played.success == blind.success else None


def _alike(one: State, other: State) -> bool:
    """Whether arm, gripper and objects are in the same places; those of what does not show are NaN."""
    places = (name for name in one if name.endswith("_m"))
    return all(np.allclose(one[n], other[n], rtol=0, atol=REPLAY_TOLERANCE_M, equal_nan=True) for n in places)


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
    how: dict[str, Any],
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
            **how,
            KEY: facts_of(family, [states[step] for step in sorted(looked)]).as_json(),
        },
    )

"""Playing one episode with the scripted expert and writing down everything that training may use."""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from datagen.keyframes import KeyframeConfig, extract_keyframes
from predimem.core.config import ConfigError
from predimem.core.episodes import Episode, Frames, SubtaskSpan
from predimem.core.interfaces import Environment
from predimem.core.types import Observation
from predimem.envs.mikasa import expert


class PrivilegedEnvironment(Environment, Protocol):
    """An environment that also tells the simulator's true state (`mikasa_expert` reads it)."""

    def privileged(self) -> dict[str, Any]: ...


@dataclass(frozen=True)
class PerturbationConfig:
    """What makes visited states diverse; subtask labels and `Alternatives` are always the expert's.

    noise_share: share of episodes with normal noise of `noise_std` (1 = 0.1 m) on the commanded
    translation, until the TCP is first within `noise_until_m` of its goal, so that it can come to rest.
    detour_share: share in which the arm first heads for another object, for `detour_steps`.
    """

    noise_share: float = 0.35
    noise_std: float = 0.35
    noise_until_m: float = 0.03
    detour_share: float = 0.15
    detour_steps: int = 5

    def __post_init__(self) -> None:
        for name in ("noise_share", "detour_share"):
            if not 0 <= getattr(self, name) <= 1:
                raise ConfigError(f"{name} must be in [0, 1], got {getattr(self, name)}")
        for name in ("noise_std", "noise_until_m", "detour_steps"):
            if getattr(self, name) < 0:
                raise ConfigError(f"{name} must be >= 0, got {getattr(self, name)}")


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
    success: bool = False


def record_episode(
    environment: PrivilegedEnvironment,
    task: str,
    seed: int,
    perturbation: PerturbationConfig | None = None,
    keyframes: KeyframeConfig | None = None,
) -> Episode:
    """Play `seed` until the environment ends the episode, with the expert, perturbed as the seed says.

    `actions` are those that were commanded (float32 in [-1, 1]); `metadata` says how it was perturbed
    and when cue and delay ended.
    """
    config = perturbation or PerturbationConfig()
    rng = np.random.default_rng([seed, zlib.crc32(task.encode())])
    drawn = Perturbation(
        noise_std=config.noise_std if rng.random() < config.noise_share else 0.0,
        detour_steps=config.detour_steps if rng.random() < config.detour_share else 0,
    )
    played = _play(environment, seed, drawn, config.noise_until_m, rng)
    return _episode(environment, task, seed, played, drawn, keyframes)


def spans(labels: list[str]) -> tuple[SubtaskSpan, ...]:
    """The label of every step as spans of equal labels."""
    starts = [t for t in range(len(labels)) if t == 0 or labels[t] != labels[t - 1]]
    ends = [*starts[1:], len(labels)]
    return tuple(SubtaskSpan(a, b, labels[a]) for a, b in zip(starts, ends, strict=True))


def _play(
    environment: PrivilegedEnvironment,
    seed: int,
    drawn: Perturbation,
    noise_until_m: float,
    rng: np.random.Generator,
) -> _Played:
    played = _Played()
    observation = environment.reset(seed)
    detour = _other_object(environment.privileged(), rng)
    noise_ended = False
    for _ in range(environment.horizon):
        state = environment.privileged()
        on_detour = state["step"] < state["appear_step"] + drawn.detour_steps
        action = expert.expert_action(state, detour if on_detour else None)
        noise_ended = noise_ended or expert.goal_distance_m(state) < noise_until_m
        if not noise_ended and state["step"] >= state["appear_step"]:
            action[:3] += drawn.noise_std * rng.normal(size=3)
        action = np.clip(action, -1.0, 1.0).astype(np.float32)
        played.observations.append(observation)
        played.states.append(state)
        played.actions.append(action)
        result = environment.step(action)
        observation, played.success = result.observation, result.success
        if result.terminated or result.truncated:
            break
    return played


def _other_object(state: dict[str, Any], rng: np.random.Generator) -> int:
    others = [i for i in range(len(state["labels"])) if i != state["target_index"]]
    return int(rng.choice(others))


def _episode(
    environment: PrivilegedEnvironment,
    task: str,
    seed: int,
    played: _Played,
    drawn: Perturbation,
    keyframes: KeyframeConfig | None,
) -> Episode:
    observations, states = played.observations, played.states
    first = states[0]
    sensed = np.stack([o.state for o in observations])
    tcp_m = np.stack([s["tcp_m"] for s in states])
    return Episode(
        benchmark="mikasa",
        task=task,
        seed=seed,
        instruction=environment.instruction,
        control_hz=environment.control_hz,
        success=played.success,
        images={name: Frames(np.stack([o.images[name] for o in observations])) for name in observations[0].images},
        state=sensed,
        actions=np.stack(played.actions),
        subtasks=spans([expert.expert_subtask(s) for s in states]),
        keyframes=extract_keyframes(tcp_m, sensed[:, -1], environment.control_hz, keyframes),
        goal=expert.touch(first["target_label"]),
        alternatives=expert.alternatives(states),
        metadata={
            "cue_end_step": first["cue_end_step"],
            "appear_step": first["appear_step"],
            "noise_std": drawn.noise_std,
            "detour_steps": drawn.detour_steps,
        },
    )

"""Collecting demonstrations: worker processes play episodes with the scripted expert and store them.

Every episode is determined by its task and seed, stored atomically under its own name, and skipped
if it is already there: an interrupted run goes on where it stopped. The simulator is an argument
(`make_environment`), so that this package needs none.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from datagen import mikasa_expert as expert
from datagen.keyframes import KeyframeConfig, extract_keyframes
from predimem.config import ConfigError, to_dict
from predimem.episodes import Episode, SubtaskSpan, episode_path, load_episode, save_episode
from predimem.interfaces import Environment
from predimem.types import Observation

TRAINING_SEEDS = range(1_000, 100_000)  # evaluation uses 900_000 and up, the suite itself 4_242_424_242


class PrivilegedEnvironment(Environment, Protocol):
    """An environment that also tells the simulator's true state (`mikasa_expert` reads it)."""

    def privileged(self) -> dict[str, Any]: ...


MakeEnvironment = Callable[[str], PrivilegedEnvironment]


@dataclass(frozen=True)
class TaskSeeds:
    """`episodes` seeds of `task`, from `first_seed` upward."""

    task: str
    episodes: int
    first_seed: int = TRAINING_SEEDS.start

    def __post_init__(self) -> None:
        if self.episodes < 1:
            raise ConfigError(f"{self.task}: episodes must be >= 1, got {self.episodes}")
        last = self.first_seed + self.episodes - 1
        if self.first_seed not in TRAINING_SEEDS or last not in TRAINING_SEEDS:
            raise ConfigError(
                f"{self.task}: seeds {self.first_seed}..{last} are not all training seeds "
                f"({TRAINING_SEEDS.start}..{TRAINING_SEEDS.stop - 1}; the others are for evaluation): "
                "change first_seed or episodes"
            )


@dataclass(frozen=True)
class CollectConfig:
    """noise_share: share of episodes with normal noise of `noise_std` on the commanded translation
    (1 = 0.1 m), until the TCP is first within `noise_until_m` of its goal, so that it can come to rest.
    detour_share: share in which the arm first heads for another object for `detour_steps`. Both only
    make states more diverse: subtask labels and `Alternatives` are always the expert's."""

    out: str = "runs/data/mikasa"
    tasks: tuple[TaskSeeds, ...] = (
        TaskSeeds("RememberColor9-VLA-v0", 200),
        TaskSeeds("RememberColor5-VLA-v0", 60),
        TaskSeeds("RememberColor3-VLA-v0", 60),
    )
    noise_share: float = 0.35
    noise_std: float = 0.35
    noise_until_m: float = 0.03
    detour_share: float = 0.15
    detour_steps: int = 5
    workers: int = 2
    keyframes: KeyframeConfig = field(default_factory=KeyframeConfig)

    def __post_init__(self) -> None:
        for name in ("noise_share", "detour_share"):
            if not 0 <= getattr(self, name) <= 1:
                raise ConfigError(f"{name} must be in [0, 1], got {getattr(self, name)}")
        if self.workers < 1:
            raise ConfigError(f"workers must be >= 1, got {self.workers}")


@dataclass(frozen=True)
class Outcome:
    """What became of one seed. kind: "stored", or why there is no episode."""

    task: str
    seed: int
    kind: str


def collect(
    config: CollectConfig, make_environment: MakeEnvironment, progress: bool = True
) -> dict[str, Any]:
    """Make the episodes of `config` that are not there yet; returns the summary it also writes to
    `<out>/summary.json`. Ctrl-C leaves only whole episodes behind and raises KeyboardInterrupt.

    make_environment: task id -> environment; called once per worker and task, in a spawned process,
    so it must be picklable.
    """
    from tqdm import tqdm

    out = Path(config.out)
    jobs = [(spec.task, seed) for spec in config.tasks for seed in _seeds(spec)]
    todo = [job for job in jobs if not episode_path(out, *job).exists()]
    discarded: list[Outcome] = []
    with tqdm(total=len(jobs), initial=len(jobs) - len(todo), unit="episode", disable=not progress) as bar:
        for outcome in _play_all(config, make_environment, todo):
            if outcome.kind != "stored":
                discarded.append(outcome)
            bar.update()
    summary = summarise(config, discarded)
    out.mkdir(parents=True, exist_ok=True)
    partial = out / "summary.json.partial"
    partial.write_text(json.dumps(summary, indent=2) + "\n")
    os.replace(partial, out / "summary.json")
    return summary


def summarise(config: CollectConfig, discarded: Iterable[Outcome]) -> dict[str, Any]:
    """Counts per task, from the stored episodes themselves (each is verified while it is read)."""
    causes = list(discarded)
    tasks = {}
    for spec in config.tasks:
        paths = [episode_path(config.out, spec.task, seed) for seed in _seeds(spec)]
        episodes = [load_episode(path) for path in paths if path.exists()]
        keyframes = Counter(len(e.keyframes) for e in episodes)
        tasks[spec.task] = {
            "episodes": len(episodes),
            "yield": len(episodes) / spec.episodes,
            "discarded": dict(Counter(o.kind for o in causes if o.task == spec.task)),
            "successes": sum(e.success for e in episodes),
            "noisy": sum(bool(e.metadata["noise_std"]) for e in episodes),
            "detours": sum(bool(e.metadata["detour_steps"]) for e in episodes),
            "lengths": _histogram(Counter(len(e) for e in episodes)),
            "keyframes_per_episode": _histogram(keyframes),
        }
    return {"config": to_dict(config), "tasks": tasks}


def record_episode(
    environment: PrivilegedEnvironment, task: str, seed: int, config: CollectConfig
) -> Episode:
    """Play `seed` to the horizon with the expert, perturbed as `config` and the seed say."""
    rng = np.random.default_rng([seed, zlib.crc32(task.encode())])
    noise_std = config.noise_std if rng.random() < config.noise_share else 0.0
    detour = config.detour_steps if rng.random() < config.detour_share else 0
    observation = environment.reset(seed)
    observations: list[Observation] = []
    states: list[dict[str, Any]] = []
    actions: list[np.ndarray] = []
    success = close = False
    others = [i for i in range(len(environment.privileged()["labels"]))]
    others.remove(environment.privileged()["target_index"])
    visited = int(rng.choice(others))
    while len(actions) < environment.horizon:
        state = environment.privileged()
        on_detour = state["step"] < state["appear_step"] + detour
        action = expert.expert_action(state, visited if on_detour else None)
        close = close or expert.goal_distance_m(state) < config.noise_until_m
        if not close and state["step"] >= state["appear_step"]:
            action[:3] += noise_std * rng.normal(size=3)
        action = np.clip(action, -1.0, 1.0).astype(np.float32)
        observations.append(observation)
        states.append(state)
        actions.append(action)
        result = environment.step(action)
        observation, success = result.observation, result.success
        if result.terminated or result.truncated:
            break
    labels = [expert.expert_subtask(state) for state in states]
    state_array = np.stack([o.state for o in observations])
    tcp_m = np.stack([s["tcp_m"] for s in states])
    return Episode(
        suite="mikasa",
        task=task,
        seed=seed,
        instruction=environment.instruction,
        control_hz=environment.control_hz,
        success=success,
        images={name: np.stack([o.images[name] for o in observations]) for name in observations[0].images},
        state=state_array,
        actions=np.stack(actions),
        subtasks=spans(labels),
        keyframes=extract_keyframes(tcp_m, state_array[:, -1], environment.control_hz, config.keyframes),
        goal=expert.touch(states[0]["target_label"]),
        alternatives=expert.alternatives(states),
        metadata={
            "cue_end_step": states[0]["cue_end_step"],
            "appear_step": states[0]["appear_step"],
            "noise_std": noise_std,
            "detour_steps": detour,
        },
    )


def spans(labels: list[str]) -> tuple[SubtaskSpan, ...]:
    """The label of every step as spans of equal labels."""
    starts = [t for t in range(len(labels)) if t == 0 or labels[t] != labels[t - 1]]
    ends = [*starts[1:], len(labels)]
    return tuple(SubtaskSpan(a, b, labels[a]) for a, b in zip(starts, ends, strict=True))


def _seeds(spec: TaskSeeds) -> range:
    return range(spec.first_seed, spec.first_seed + spec.episodes)


def _histogram(counts: Counter[int]) -> dict[str, int]:
    return {str(value): counts[value] for value in sorted(counts)}


def _play_all(
    config: CollectConfig, make_environment: MakeEnvironment, jobs: list[tuple[str, int]]
) -> Iterator[Outcome]:
    if not jobs:
        return
    context = multiprocessing.get_context("spawn")
    workers = min(config.workers, len(jobs))
    pool = context.Pool(workers, _start_worker, (config, make_environment))
    try:
        yield from pool.imap_unordered(_play, jobs, chunksize=1)
        pool.close()
    except BaseException:
        pool.terminate()
        raise
    finally:
        pool.join()


class _Worker:
    """One process's configuration and its one living environment."""

    def __init__(self, config: CollectConfig, make_environment: MakeEnvironment):
        self.config = config
        self._make_environment = make_environment
        self._task = ""
        self._environment: PrivilegedEnvironment | None = None

    def environment(self, task: str) -> PrivilegedEnvironment:
        if self._environment is None or task != self._task:
            if self._environment is not None:
                self._environment.close()
            self._environment, self._task = self._make_environment(task), task
        return self._environment


_worker: _Worker | None = None  # set in spawned processes only: a pool can hand state over in no other way


def _start_worker(config: CollectConfig, make_environment: MakeEnvironment) -> None:
    global _worker
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle
    _worker = _Worker(config, make_environment)


def _play(job: tuple[str, int]) -> Outcome:
    assert _worker is not None
    task, seed = job
    return play_and_store(_worker.environment(task), task, seed, _worker.config)


def play_and_store(
    environment: PrivilegedEnvironment, task: str, seed: int, config: CollectConfig
) -> Outcome:
    """Record one seed and store it, unless the expert failed without having been perturbed."""
    episode = record_episode(environment, task, seed, config)
    perturbed = episode.metadata["noise_std"] or episode.metadata["detour_steps"]
    if not episode.success and not perturbed:
        return Outcome(task, seed, "expert failed")
    save_episode(episode_path(config.out, task, seed), episode)
    return Outcome(task, seed, "stored")

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
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from datagen.keyframes import KeyframeConfig
from datagen.record import PerturbationConfig, PrivilegedEnvironment, record_episode
from predimem.config import ConfigError, to_dict
from predimem.episodes import episode_path, load_episode, save_episode

TRAINING_SEEDS = range(1_000, 100_000)  # evaluation uses 900_000 and up, the suite itself 4_242_424_242


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
    """Where the episodes go, which there shall be, and how they are perturbed and annotated."""

    out: str = "runs/data/mikasa"
    tasks: tuple[TaskSeeds, ...] = (
        TaskSeeds("RememberColor9-VLA-v0", 200),
        TaskSeeds("RememberColor5-VLA-v0", 60),
        TaskSeeds("RememberColor3-VLA-v0", 60),
    )
    perturbation: PerturbationConfig = field(default_factory=PerturbationConfig)
    keyframes: KeyframeConfig = field(default_factory=KeyframeConfig)

    def __post_init__(self) -> None:
        names = [spec.task for spec in self.tasks]
        if len(set(names)) != len(names):
            raise ConfigError(f"each task may be listed once, got {', '.join(names)}")


@dataclass(frozen=True)
class Outcome:
    """What became of one seed. kind: "stored", or why there is no episode."""

    task: str
    seed: int
    kind: str


def collect(
    config: CollectConfig, make_environment: MakeEnvironment, workers: int = 2, progress: bool = True
) -> dict[str, Any]:
    """Make the episodes of `config` that are not there yet; returns the summary it also writes to
    `<out>/summary.json`. Ctrl-C leaves only whole episodes behind and raises KeyboardInterrupt.

    make_environment: task id -> environment; called once per worker and task, in a spawned process,
    so it must be picklable. workers: processes, at least 1 (ValueError otherwise).
    """
    if workers < 1:
        raise ValueError(f"workers must be >= 1, got {workers}")
    from tqdm import tqdm

    out = Path(config.out)
    jobs = [(spec.task, seed) for spec in config.tasks for seed in _seeds(spec)]
    todo = [job for job in jobs if not episode_path(out, *job).exists()]
    discarded: list[Outcome] = []
    with tqdm(total=len(jobs), initial=len(jobs) - len(todo), unit="episode", disable=not progress) as bar:
        for outcome in _play_all(config, make_environment, todo, workers):
            if outcome.kind != "stored":
                discarded.append(outcome)
            bar.update()
    summary = summarise(config, discarded)
    _write_json(out / "summary.json", summary)
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


def _seeds(spec: TaskSeeds) -> range:
    return range(spec.first_seed, spec.first_seed + spec.episodes)


def _write_json(path: Path, data: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(path.name + ".partial")
    partial.write_text(json.dumps(data, indent=2) + "\n")
    os.replace(partial, path)


def _histogram(counts: Counter[int]) -> dict[str, int]:
    return {str(value): counts[value] for value in sorted(counts)}


def _play_all(
    config: CollectConfig, make_environment: MakeEnvironment, jobs: list[tuple[str, int]], workers: int
) -> Iterator[Outcome]:
    if not jobs:
        return
    context = multiprocessing.get_context("spawn")
    pool = context.Pool(min(workers, len(jobs)), _start_worker, (config, make_environment))
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


def play_and_store(environment: PrivilegedEnvironment, task: str, seed: int, config: CollectConfig) -> Outcome:
    """Record one seed and store it, unless the expert failed without having been perturbed."""
    episode = record_episode(environment, task, seed, config.perturbation, config.keyframes)
    perturbed = episode.metadata["noise_std"] or episode.metadata["detour_steps"]
    if not episode.success and not perturbed:
        return Outcome(task, seed, "expert failed")
    save_episode(episode_path(config.out, task, seed), episode)
    return Outcome(task, seed, "stored")

"""Collecting demonstrations: workers play episodes with the scripted expert and store them.

Every episode is determined by its task and seed, stored atomically under its own name, and skipped
if it is already there: an interrupted run goes on where it stopped. The simulator is an argument
(`make_environment`), so that this package needs none.
"""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal

from datagen.demos.record import PerturbationConfig, PrivilegedEnvironment, record_episode
from datagen.keyframes import KeyframeConfig
from predimem.core.config import ConfigError, to_dict
from predimem.core.episodes import episode_path, load_episode, save_episode
from predimem.core.seeds import TRAINING_SEEDS, check_training_seed
from predimem.jobs.journal import Journal
from predimem.jobs.runner import BackendConfig, run_jobs
from predimem.jobs.tasks import Job, Outcome

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
        for seed in (self.first_seed, self.first_seed + self.episodes - 1):
            check_training_seed(seed, self.task)


@dataclass(frozen=True)
class CollectConfig:
    """Where the episodes go, which there shall be, and how they are perturbed and annotated."""

    suite: Literal["mikasa"] = "mikasa"
    out: str = "runs/data/mikasa"
    tasks: tuple[TaskSeeds, ...] = (
        TaskSeeds("RememberColor9-VLA-v0", 200),
        TaskSeeds("RememberColor5-VLA-v0", 60),
        TaskSeeds("RememberColor3-VLA-v0", 60),
    )
    perturbation: PerturbationConfig = field(default_factory=PerturbationConfig)
    keyframes: KeyframeConfig = field(default_factory=partial(KeyframeConfig, gripper_closed_below_m=0.05))

    def __post_init__(self) -> None:
        names = [spec.task for spec in self.tasks]
        if len(set(names)) != len(names):
            raise ConfigError(f"each task may be listed once, got {', '.join(names)}")


def collect(
    config: CollectConfig,
    make_environment: MakeEnvironment,
    backend: BackendConfig | None = None,
    progress: bool = True,
    retry_errors: bool = False,
) -> dict[str, Any]:
    """Make the episodes of `config` that are not there yet; returns the summary it also writes to
    `<out>/summary.json`. Resumes, and treats deaths, errors and Ctrl-C as `predimem.jobs.runner.run_jobs` says.

    make_environment: task id -> environment; called once per worker and task, in another process, so it
    must be picklable.
    """
    out = Path(config.out)
    jobs = [Job(spec.task, seed) for spec in config.tasks for seed in _seeds(spec)]
    with Journal(
        out,
        to_dict(config),
        episode_path=lambda job: episode_path(out, job.task, job.seed),
        may_differ=("suite", "out", "tasks"),
    ) as journal:
        worker = partial(ExpertWorker, config, make_environment)
        outcomes = run_jobs(jobs, worker, journal, backend, progress, retry_errors)
    summary = summarise(config, outcomes)
    _write_json(out / "summary.json", summary)
    return summary


def summarise(config: CollectConfig, outcomes: Iterable[Outcome]) -> dict[str, Any]:
    """Counts per task, from the stored episodes themselves (each is verified while it is read)."""
    discarded = [outcome for outcome in outcomes if not outcome.kept]
    tasks = {}
    for spec in config.tasks:
        paths = [episode_path(config.out, spec.task, seed) for seed in _seeds(spec)]
        episodes = [load_episode(path) for path in paths if path.exists()]
        keyframes = Counter(len(e.keyframes) for e in episodes)
        tasks[spec.task] = {
            "episodes": len(episodes),
            "yield": len(episodes) / spec.episodes,
            "discarded": dict(Counter(o.cause for o in discarded if o.task == spec.task)),
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


@dataclass
class ExpertWorker:
    """Plays jobs with the scripted expert in one environment, rebuilt when the task changes."""

    config: CollectConfig
    make_environment: MakeEnvironment
    _task: str = ""
    _environment: PrivilegedEnvironment | None = None

    def play(self, job: Job) -> Outcome:
        """Record the job's episode and store it, unless the expert failed without having been perturbed."""
        began_s = time.perf_counter()
        environment = self._environment_of(job.task)
        episode = record_episode(environment, job.task, job.seed, self.config.perturbation, self.config.keyframes)
        perturbed = episode.metadata["noise_std"] or episode.metadata["detour_steps"]
        kept = bool(episode.success or perturbed)
        if kept:
            save_episode(episode_path(self.config.out, job.task, job.seed), episode)
        cause = "" if kept else "expert failed"
        return Outcome(job.task, job.seed, kept, cause, len(episode), time.perf_counter() - began_s)

    def close(self) -> None:
        if self._environment is not None:
            self._environment.close()

    def _environment_of(self, task: str) -> PrivilegedEnvironment:
        if self._environment is None or task != self._task:
            self.close()
            self._environment, self._task = self.make_environment(task), task
        return self._environment

"""Demonstrations of MIKASA: workers play episodes with its scripted expert and store them.

Every episode is determined by its task and seed.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Literal

from datagen.demos.controllers import DriverConfig, PerturbationConfig
from datagen.demos.record import PrivilegedEnvironment, record_driven_episode, record_episode
from datagen.demos.thrift import ThriftConfig
from datagen.environments import KeptEnvironment
from datagen.former_names import todays_kind
from datagen.inputs import of_models
from datagen.keyframes import KeyframeConfig
from predimem.core.config import ConfigError, to_dict
from predimem.core.episode_folder import episode_path
from predimem.core.episode_reader import load_episode
from predimem.core.episode_writer import save_episode
from predimem.core.episodes import Episode
from predimem.core.files import write_json
from predimem.core.interfaces import Policy
from predimem.core.seeds import DEMONSTRATION_SEEDS, check_training_seeds
from predimem.jobs.tasks import Job, Outcome

MakeEnvironment = Callable[[str], PrivilegedEnvironment]


@dataclass(frozen=True)
class TaskSeeds:
    """`episodes` seeds of `task`, from `first_seed` upward."""

    task: str
    episodes: int
    first_seed: int = DEMONSTRATION_SEEDS.start

    def __post_init__(self) -> None:
        if self.episodes < 1:
            raise ConfigError(f"{self.task}: episodes must be >= 1, got {self.episodes}")
        check_training_seeds(self.seeds, self.task)

    @property
    def seeds(self) -> range:
        return range(self.first_seed, self.first_seed + self.episodes)


@dataclass(frozen=True)
class CollectConfig:
    """Which demonstrations of MIKASA are made.

    out: the folder of the episodes.
    tasks: how many seeds of which tasks.
    perturbation: how the expert is perturbed.
    driver: an actor that moves the arm instead; null: the expert does.
    images: which images are rendered.
    keyframes: how the arm's motion tells keyframes; null: the first image of whatever has to be remembered is one.
    """

    may_differ: ClassVar[tuple[str, ...]] = ("kind", "out", "tasks")
    complete_data = staticmethod(todays_kind)

    kind: Literal["mikasa"] = "mikasa"
    out: str = "runs/data/mikasa"
    tasks: tuple[TaskSeeds, ...] = (
        TaskSeeds("RememberColor9-VLA-v0", 200),
        TaskSeeds("RememberColor5-VLA-v0", 60),
        TaskSeeds("RememberColor3-VLA-v0", 60),
    )
    perturbation: PerturbationConfig = field(default_factory=PerturbationConfig)
    driver: DriverConfig | None = None
    images: ThriftConfig = field(default_factory=ThriftConfig)
    keyframes: KeyframeConfig | None = field(default_factory=partial(KeyframeConfig, gripper_closed_below_m=0.05))

    def __post_init__(self) -> None:
        names = [spec.task for spec in self.tasks]
        if len(set(names)) != len(names):
            raise ConfigError(f"each task may be listed once, got {', '.join(names)}")
        if self.driver is not None and self.driver.execute_steps % self.images.every:
            raise ConfigError(
                f"driver: the actor looks every {self.driver.execute_steps} steps (execute_steps), where there is no "
                f"fresh image every {self.images.every} (images.every): make the first a multiple of the second"
            )

    def jobs(self) -> list[Job]:
        return [Job(spec.task, seed) for spec in self.tasks for seed in spec.seeds]

    def inputs(self) -> dict[str, str]:
        return {} if self.driver is None else of_models({"driver": self.driver.actor})

    def for_workers(self) -> CollectConfig:
        return self if self.driver is None else replace(self, driver=self.driver.resolved())


def write_summary(config: CollectConfig, outcomes: Iterable[Outcome]) -> None:
    write_json(Path(config.out) / "summary.json", summarise(config, outcomes), indent=2)


def summarise(config: CollectConfig, outcomes: Iterable[Outcome]) -> dict[str, Any]:
    """Counts per task, from the stored episodes themselves (each is verified while it is read)."""
    discarded = [outcome for outcome in outcomes if not outcome.kept]
    tasks = {}
    for spec in config.tasks:
        paths = [episode_path(config.out, spec.task, seed) for seed in spec.seeds]
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


def _histogram(counts: Counter[int]) -> dict[str, int]:
    return {str(value): counts[value] for value in sorted(counts)}


class ExpertWorker:
    """A `predimem.jobs.tasks.Worker`: plays jobs with the scripted expert in one environment."""

    def __init__(self, config: CollectConfig, make_environment: MakeEnvironment | None = None):
        """make_environment: task id -> environment; None for those of MIKASA with simplified meshes."""
        self._config, self._environment = config, KeptEnvironment(make_environment or mikasa_environment)
        self._policy = None if config.driver is None else _driving(config.driver)

    def play(self, job: Job) -> Outcome:
        """Record the job's episode and store it, unless the expert failed without having been perturbed."""
        began_s = time.perf_counter()
        episode = self._record(job)
        perturbed = episode.metadata["noise_std"] or episode.metadata["detour_steps"]
        kept = bool(episode.success or perturbed or self._config.driver)
        if kept:
            save_episode(episode_path(self._config.out, job.task, job.seed), episode)
        cause = "" if kept else "expert failed"
        return Outcome(job.task, job.seed, kept, cause, len(episode), time.perf_counter() - began_s)

    def close(self) -> None:
        self._environment.close()

    def _record(self, job: Job) -> Episode:
        environment, config = self._environment.of(job.task), self._config
        if self._policy is None or config.driver is None:
            how, keyframes, images = config.perturbation, config.keyframes, config.images
            return record_episode(environment, job.task, job.seed, how, keyframes, images)
        return record_driven_episode(
            environment, job.task, job.seed, self._policy, config.driver, config.keyframes, config.images
        )


def _driving(config: DriverConfig) -> Policy:
    import torch

    from actor.policy import load_policy

    torch.set_num_threads(1)
    return load_policy(config.actor)


def mikasa_environment(task: str) -> PrivilegedEnvironment:
    from predimem.envs.mikasa.suite import MikasaEnvironment

    return MikasaEnvironment(task, "fast")

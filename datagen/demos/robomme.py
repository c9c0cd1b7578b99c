"""Demonstrations of RoboMME: its own motion planners play its episodes, and what they do is stored.

The conditioning video of an episode comes first: its frames are the first rows of the file, under the label "watch the
video", and `Episode.video_steps` says how many they are. A memory that replays the file sees them before everything
else, as the robot does, and the actor is not trained on them.
"""

from __future__ import annotations

import random
import time
from collections import deque
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from datagen.demos.joint_noise import JointNoise
from datagen.demos.record import spans
from datagen.demos.robomme_rows import EpisodeRows
from datagen.environments import KeptEnvironment
from datagen.generation import check_at_least
from predimem.core.config import ConfigError, tasks_as_text
from predimem.core.episode_folder import episode_path
from predimem.core.episode_writer import EpisodeWriter
from predimem.core.episodes import VIDEO_STEPS
from predimem.core.seeds import DEMONSTRATION_SEEDS, check_training_seeds
from predimem.core.types import Observation
from predimem.envs.robomme import package
from predimem.envs.robomme.benchmark import TRIED
from predimem.envs.robomme.events import appearances, shown
from predimem.envs.robomme.expert import SkillsPolicy, TaskListExpert
from predimem.envs.robomme.labels import WATCH
from predimem.envs.robomme.package import NoScene
from predimem.envs.robomme.robot import ARM_JOINTS, CAMERAS
from predimem.envs.robomme.suite import RobommeEnvironment
from predimem.jobs.tasks import Job, Outcome


@dataclass(frozen=True)
class RobommeDataConfig:
    """Which demonstrations of RoboMME are made, and how.

    out: the folder of the episodes.
    tasks: names of RoboMME's tasks; empty: all that were tried.
    episodes, first_seed: so many episodes of each task. Seed 1000 + k is RoboMME's train episode k, of which there are
        100; those above are episodes of its environments that it does not use itself.
    image_px, image_every, rendering: see `RobommeEnvironment`. Images are stored every so many control steps, of
        conditioning videos too.
    driver: who acts. "motions": RoboMME's planners carry out its task list, each motion to its end, as they did for its
        own demonstrations; the label is that of the motion. "skills": the same planners carry out the subtask that
        RoboMME's own check waits for, which they are told late; the label is what is due. Planners learn from
        these, because an actor, too, hears late what is due.
    delay_steps: with the driver "skills", each subtask is told late by 0 to so many control steps, drawn anew.
    noise_rad: the standard deviation of `JointNoise`, which no row holds; 0: none.
    """

    may_differ: ClassVar[tuple[str, ...]] = ("kind", "out", "tasks", "episodes", "first_seed")
    complete_data = staticmethod(tasks_as_text)

    kind: Literal["robomme"] = "robomme"
    out: str = "runs/data/robomme"
    tasks: tuple[str, ...] = ()
    episodes: int = 100
    first_seed: int = DEMONSTRATION_SEEDS.start
    image_px: int = 128
    image_every: int = 5
    rendering: Literal["stock", "fast"] = "fast"
    driver: Literal["motions", "skills"] = "motions"
    delay_steps: int = 14
    noise_rad: float = 0.0

    def __post_init__(self) -> None:
        check_at_least(self, 1, "episodes", "image_px", "image_every")
        check_at_least(self, 0, "delay_steps", "noise_rad")
        check_training_seeds(self.seeds, "first_seed, episodes")
        if len(set(self.tasks)) != len(self.tasks):
            raise ConfigError(f"each task may be listed once, got {', '.join(self.tasks)}")

    @property
    def seeds(self) -> range:
        return range(self.first_seed, self.first_seed + self.episodes)

    def jobs(self) -> list[Job]:
        """Raises ValueError for an unknown task or seed, and NotInstalled without RoboMME's package."""
        package.check_installed()
        for task in self.tasks:
            package.check_task(task)
        for seed in (self.seeds[0], self.seeds[-1]):
            package.episode_of(seed)
        return [Job(task, seed) for task in self.tasks or TRIED for seed in self.seeds]

    def inputs(self) -> dict[str, str]:
        return {}

    def for_workers(self) -> RobommeDataConfig:
        return self


class RobommeWorker:
    """A `predimem.jobs.tasks.Worker`. Only episodes that RoboMME calls a success are kept."""

    def __init__(self, config: RobommeDataConfig):
        import torch

        torch.set_num_threads(1)
        self._config = config
        self._environment = KeptEnvironment(self._make)

    def play(self, job: Job) -> Outcome:
        began_s, began_cpu_s = time.perf_counter(), time.process_time()
        environment: RobommeEnvironment = self._environment.of(job.task)
        try:
            cause, steps = record(environment, job, self._config)
            video_steps = len(environment.video)
        except NoScene:
            cause, steps, video_steps = "no scene", 0, 0
        report = {"cpu_s": round(time.process_time() - began_cpu_s, 2), "video_steps": video_steps}
        return Outcome(job.task, job.seed, not cause, cause, steps, round(time.perf_counter() - began_s, 3), report)

    def close(self) -> None:
        self._environment.close()

    def _make(self, task: str) -> RobommeEnvironment:
        config = self._config
        environment = RobommeEnvironment(task, config.image_px, config.rendering, config.image_every)
        environment.camera_every = config.image_every
        return environment


def record(environment: RobommeEnvironment, job: Job, config: RobommeDataConfig) -> tuple[str, int]:
    """Play an episode and store it if it succeeds; (why it was discarded, "" if it was not; its control steps)."""
    observation = environment.reset(job.seed)
    driver = _Motions(environment) if config.driver == "motions" else _Skills(environment, job.seed, config.delay_steps)
    noise = JointNoise(config.noise_rad, ARM_JOINTS, job.seed)
    path = episode_path(config.out, job.task, job.seed)
    size: dict[str, tuple[int, int]] = {name: (config.image_px, config.image_px) for name in CAMERAS}
    with EpisodeWriter(path, "robomme", job.task, job.seed, environment.control_hz, size) as writer:
        rows = EpisodeRows(writer)
        for frame in environment.video:
            rows.add(frame, environment.hold_action(None), WATCH)
        seen, result = list(environment.shown_in_video), None
        for _ in range(environment.horizon):
            action, label = driver.act(observation)
            seen.append(shown(environment.simulation))
            rows.add(observation, action, label)
            result = environment.step(noise.disturbed(action))
            observation = result.observation
            if result.terminated or result.truncated:
                break
        driver.close()
        if result is None or not result.success:
            return str(result.info["failure"]) if result else "no steps", len(rows.labels)
        writer.finish(
            instruction=environment.instruction,
            success=True,
            subtasks=spans(rows.labels),
            keyframes=rows.keyframes(appearances(seen), len(environment.video)),
            metadata={
                VIDEO_STEPS: len(environment.video),
                "driver": config.driver,
                "episode": list(package.episode_of(job.seed)),
                "difficulty": str(getattr(environment.simulation, "difficulty", "")),
            },
        )
    return "", len(rows.labels)


class _Motions:
    """RoboMME's planners carry out its task list."""

    def __init__(self, environment: RobommeEnvironment):
        self._expert = TaskListExpert(environment)

    def act(self, observation: Observation) -> tuple[np.ndarray, str]:
        """(action, label)"""
        return self._expert.action(), self._expert.subtask

    def close(self) -> None:
        self._expert.reset()


class _Skills:
    """RoboMME's planners carry out the subtask that is due, which they are told late."""

    def __init__(self, environment: RobommeEnvironment, seed: int, delay_steps: int):
        self._environment, self._delay_steps = environment, delay_steps
        self._policy, self._draw = SkillsPolicy(environment), random.Random(seed)
        self._last, self._told = "", ""
        self._waiting: deque[tuple[int, str]] = deque()  # (step at which it is told, subtask)

    def act(self, observation: Observation) -> tuple[np.ndarray, str]:
        """(action, label)"""
        due = self._environment.labels.due().label
        if due != self._last:
            self._waiting.append((observation.step + self._draw.randint(0, self._delay_steps), due))
            self._last = due
        while self._waiting and self._waiting[0][0] <= observation.step:
            self._told = self._waiting.popleft()[1]
        if not self._told:
            return self._environment.hold_action(None), due
        return self._policy.infer(observation, self._told).actions[0], due

    def close(self) -> None:
        self._policy.reset()

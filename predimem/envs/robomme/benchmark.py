"""RoboMME as a `predimem.envs.benchmark.Benchmark`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from predimem.core.interfaces import Environment
from predimem.envs.benchmark import (
    Benchmark,
    EnvironmentOptions,
    EnvironmentRequest,
    Experts,
    Published,
    PublishedMeans,
)
from predimem.envs.robomme import package, suite
from predimem.envs.robomme import published as figures
from predimem.envs.robomme.robot import OPENING, POSITION
from predimem.rendering.vulkan import use_driver

EXPERT = "predimem.envs.robomme.expert"
# Tasks that were seen to reset, step and be solved by RoboMME's planners on the ManiSkill that this project uses
TRIED = (
    "PickXtimes", "BinFill", "SwingXtimes", "StopCube", "ButtonUnmask", "ButtonUnmaskSwap", "PickHighlight",
    "VideoUnmask", "MoveCube",
)  # fmt: skip


@dataclass(frozen=True)
class RobommeOptions(EnvironmentOptions):
    """How RoboMME is played.

    rendering: `stock` renders RoboMME's meshes and sizes of images and scales these, for figures to quote; `fast`
    renders coarse meshes in `image_px`, for data and studies.
    image_px: the width and height of the images.
    video_every: one frame of so many control steps of a conditioning video is rendered.
    """

    rendering: Literal["stock", "fast"] = "stock"
    image_px: int = 128
    video_every: int = 5


class RobommeBenchmark(Benchmark):
    """A task is called by RoboMME's name. Seeds stand for its episodes (`package.SPLITS`): 900000 and up are those of
    its test split."""

    name = "robomme"
    config = "configs/eval/robomme.yaml"
    options = RobommeOptions
    experts = Experts({"oracle": f"{EXPERT}:oracle"}, {"skills": f"{EXPERT}:skills"}, f"{EXPERT}:true_subtask")
    long_episodes = True
    environments_kept = 1

    def version(self) -> str:
        return package.versions()

    def all_tasks(self) -> tuple[str, ...]:
        return TRIED

    def listed_tasks(self) -> tuple[str, ...]:
        return package.TASKS

    def describe(self, task: str) -> str:
        suite_name = next(name for name, tasks in package.SUITES.items() if task in tasks)
        if task in package.STICK_TASKS:
            return f"{suite_name:<10}  needs RoboMME's fork of ManiSkill"
        return f"{suite_name:<10}" + ("" if task in TRIED else "  not tried here")

    def task_name(self, task: str) -> str:
        package.check_task(task)
        return task

    def make_environment(self, task: str, options: RobommeOptions, request: EnvironmentRequest) -> Environment:
        return suite.RobommeEnvironment(task, options.image_px, options.rendering, options.video_every)

    def horizon(self, task: str) -> int:
        return package.MAX_STEPS

    def categories(self, tasks: Sequence[str]) -> Mapping[str, Sequence[str]]:
        return package.SUITES

    def published(self, task: str) -> tuple[Published, ...]:
        return figures.published(task)

    def published_note(self) -> str:
        return figures.NOTE

    def published_means(self) -> PublishedMeans:
        return figures.MEANS

    def gripper_trajectory(self, states: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return states[:, POSITION], states[:, OPENING].sum(axis=1)

    def prepare(self, images: bool) -> None:
        """Raises NotInstalled, and VulkanError where images are wanted and nothing can render them."""
        package.check_installed()
        if images:
            use_driver()


ROBOMME = RobommeBenchmark()

"""The arena as a `predimem.envs.benchmark.Benchmark`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from predimem.core.interfaces import Environment
from predimem.core.own_code import SUFFIX
from predimem.envs.arena import suite
from predimem.envs.arena.task import CATEGORIES
from predimem.envs.arena.tasks import TASKS, task_of
from predimem.envs.arena.vocabulary import labels
from predimem.envs.benchmark import Benchmark, EnvironmentOptions, EnvironmentRequest, Experts
from predimem.rendering.vulkan import use_driver

EXPERTS = "datagen.experts.arena"


@dataclass(frozen=True)
class ArenaOptions(EnvironmentOptions):
    """How the arena is played.

    image_px: the width and height of the images.
    inverse_kinematics: who turns the actions of learned actors (`pd_ee_delta_pose`) into joint angles: `predimem`, our
    solver, as in the data that they were trained on, or `maniskill`, its controller, which is slower.
    """

    image_px: int = 128
    inverse_kinematics: Literal["predimem", "maniskill"] = "predimem"


class ArenaBenchmark(Benchmark):
    """A task is called by its number, name, Gymnasium id, or the file that defines it."""

    name = "arena"
    config = "configs/eval/arena.yaml"
    options = ArenaOptions
    experts = Experts(
        agents={"oracle": f"{EXPERTS}:oracle", "script": f"{EXPERTS}:script"},
        policies={"skills": f"{EXPERTS}:skills", "expert": f"{EXPERTS}:memoryless"},
        subtask=f"{EXPERTS}:true_subtask",
    )
    long_episodes = True
    heeds_requests = True
    environments_kept = 1  # of 26 tasks all environments together would not fit

    def version(self) -> str:
        return suite.benchmark_version()

    def all_tasks(self) -> tuple[str, ...]:
        return tuple(task.name for task in TASKS)

    def describe(self, task: str) -> str:
        known = task_of(task)
        return f"{known.task_id:>2}  {known.category:<12}  {known.stages} stages  {known.variants[0].instruction}"

    def task_name(self, task: str) -> str:
        return task_of(task).name

    def task_file(self, task: str) -> str | None:
        return str(Path(task).resolve()) if task.endswith(SUFFIX) else None

    def subtasks(self, task: str) -> Sequence[str]:
        return labels([task_of(task)])

    def horizon(self, task: str) -> int | None:
        return task_of(task).horizon

    def categories(self, tasks: Sequence[str]) -> Mapping[str, Sequence[str]]:
        known = {task.name: task for task in (*TASKS, *map(task_of, tasks))}
        return {c: [name for name, task in known.items() if task.category == c] for c in CATEGORIES}

    def make_environment(self, task: str, options: ArenaOptions, request: EnvironmentRequest) -> Environment:
        """Experts command joint angles, which takes a third of the time to simulate; whatever was learned or is
        random gives the actions of the demonstrations."""
        control_mode = "pd_joint_pos" if request.privileged else "pd_ee_delta_pose"
        return suite.make(task, control_mode, options.image_px, request.images, options.inverse_kinematics)

    def gripper_trajectory(self, states: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return states[:, suite.POSITION], states[:, suite.OPENING]

    def prepare(self, images: bool) -> None:
        """Raises `predimem.rendering.vulkan.VulkanError` where images are wanted and nothing can render them."""
        if images:
            use_driver()


ARENA = ArenaBenchmark()

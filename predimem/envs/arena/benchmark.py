"""The arena as a `predimem.envs.benchmark.Benchmark`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from predimem.core.interfaces import Environment
from predimem.core.own_code import SUFFIX
from predimem.core.suggestions import did_you_mean
from predimem.envs.arena import suite
from predimem.envs.arena.long.templates import long_task, long_tasks
from predimem.envs.arena.task import CATEGORIES, LONG, Task
from predimem.envs.arena.tasks import TASKS, task_of
from predimem.envs.arena.unseen.conditions import CONDITIONS, PLAIN, condition_of
from predimem.envs.arena.vocabulary import labels
from predimem.envs.benchmark import Benchmark, EnvironmentOptions, EnvironmentRequest, Experts
from predimem.rendering.vulkan import use_driver

EXPERTS = "datagen.experts.arena"
STANDARD = "standard"  # the 26 tasks
DIFFICULTIES = (STANDARD, LONG)


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
    """A task is called by its number, name, Gymnasium id, or the file that defines it; a long one by its name.

    One of the 26 in a condition (`unseen.conditions`) is `<task>-<condition>`, such as `4-camera`.
    """

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

    def in_conditions(self, tasks: Sequence[str], conditions: Sequence[str]) -> tuple[str, ...]:
        """Raises ValueError for unknown ones, for a task that is in a condition already, and for one of a file."""
        chosen = tasks or self.all_tasks()
        return tuple(self.task_name(f"{task}-{condition_of(c).name}") for c in conditions for task in chosen)

    def at_difficulty(self, tasks: Sequence[str], difficulty: str) -> tuple[str, ...]:
        """Among the long tasks a number is that of a long task. Raises ValueError for what there is not."""
        if difficulty not in DIFFICULTIES:
            meant = did_you_mean(difficulty, DIFFICULTIES)
            raise ValueError(f"unknown difficulty {difficulty!r}{meant}; the arena has: {', '.join(DIFFICULTIES)}")
        if difficulty == LONG:
            return tuple(long_task(task).name for task in tasks) or tuple(task.name for task in long_tasks())
        other = [task for task in tasks if parse(task)[0].category == LONG]
        if other:
            raise ValueError(f"{other[0]} is a long task: play it with --difficulty {LONG}, or leave --difficulty out")
        return tuple(tasks) or self.all_tasks()

    def describe(self, task: str) -> str:
        known, condition = parse(task)
        changed = "" if condition is None else f"  (unseen: {CONDITIONS[condition].what})"
        instruction = known.variants[0].instruction
        return f"{known.task_id:>2}  {known.category:<12}  {known.stages} stages  {instruction}{changed}"

    def task_name(self, task: str) -> str:
        known, condition = parse(task)
        return known.name if condition is None else f"{known.name}-{condition}"

    def task_file(self, task: str) -> str | None:
        return str(Path(task).resolve()) if task.endswith(SUFFIX) else None

    def subtasks(self, task: str) -> Sequence[str]:
        return labels([parse(task)[0]])

    def horizon(self, task: str) -> int | None:
        return parse(task)[0].horizon

    def categories(self, tasks: Sequence[str]) -> Mapping[str, Sequence[str]]:
        """The released ones, and that of the long tasks; what is played in a condition has that for its category: the
        same tasks otherwise."""
        parsed = {self.task_name(task): parse(task) for task in tasks}
        known = {task.name: task for task in TASKS}
        known |= {name: task for name, (task, condition) in parsed.items() if condition is None}
        released = {c: [name for name, task in known.items() if task.category == c] for c in CATEGORIES}
        unseen = {c: [name for name, (_, condition) in parsed.items() if condition == c] for c in CONDITIONS}
        long = [name for name, task in known.items() if task.category == LONG]
        found = {**unseen, LONG: long}
        return released | {category: names for category, names in found.items() if names}

    def make_environment(self, task: str, options: ArenaOptions, request: EnvironmentRequest) -> Environment:
        """Experts command joint angles, which takes a third of the time to simulate; whatever was learned or is
        random gives the actions of the demonstrations."""
        control_mode = "pd_joint_pos" if request.privileged else "pd_ee_delta_pose"
        known, condition = parse(task)
        solver = options.inverse_kinematics
        return suite.make(known, control_mode, options.image_px, request.images, solver, condition or PLAIN)

    def gripper_trajectory(self, states: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return states[:, suite.POSITION], states[:, suite.OPENING]

    def prepare(self, images: bool) -> None:
        """Raises `predimem.rendering.vulkan.VulkanError` where images are wanted and nothing can render them."""
        if images:
            use_driver()


def parse(task: str) -> tuple[Task, str | None]:
    """A task and the condition that it is called with; None where it is called without one.

    Raises ValueError for an unknown task, and for a condition behind a file's: its results could not be repeated
    without the file.
    """
    name, _, condition = task.rpartition("-")
    if condition not in CONDITIONS:
        return task_of(task), None
    known = task_of(name)
    if known.category == LONG:
        raise ValueError(f"{name}: conditions are for the {len(TASKS)} tasks of the arena: leave -{condition} out")
    if known not in TASKS:
        raise ValueError(f"{name}: conditions are for the {len(TASKS)} tasks of the arena, not for tasks of a file")
    return known, condition


ARENA = ArenaBenchmark()

"""Records the sessions that histories are made of, once, and keeps them in a folder.

A session is an episode of a lesson's task, played by the arena's scripted oracle. What is kept is what a planner would
nominate: its first image, the image at the end of each stage, and that in which a pour begins, which leaves no trace
afterwards. Nothing is said of the subtasks: it is a demonstration, and what it shows has to be seen.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import numpy as np

from predimem.core.seeds import EVALUATION_SEEDS_FROM
from predimem.core.types import Frame
from predimem.envs.arena import suite
from predimem.envs.arena.layout import draw_layout
from predimem.envs.arena.task import Task
from predimem.envs.benchmark import load_expert
from predimem.envs.interference.families import Family
from predimem.envs.interference.recordings import Recorded, RecordingFolder

VERSION = "1"  # to be raised whenever a recorded session would come out otherwise
ORACLE = "datagen.experts.arena:oracle"
FIRST_SEEDS = {"training": 80_000, "evaluation": EVALUATION_SEEDS_FROM}
SEEDS_A_SESSION = 100  # a session is of one of so many seeds, the first with its value in which the oracle succeeds

Split = Literal["training", "evaluation"]


class SessionPool:
    """Gives recorded sessions; those that are missing are recorded, which needs a renderer.

    folder: where they are kept, see `RecordingFolder`.
    split: sessions to train and choose thresholds on, or those of the benchmark; they share no seed.
    """

    def __init__(self, folder: str | Path, image_px: int = 128, split: Split = "evaluation"):
        self._folder = RecordingFolder(Path(folder) / f"{VERSION}-{image_px}px" / split, suite.CONTROL_HZ)
        self._image_px, self._split = image_px, split
        self._environment: tuple[str, suite.ArenaEnvironment] | None = None  # of the last recording, with its task

    def lesson(self, family: Family, value: int, number: int) -> Recorded:
        """Session `number` of those that show `value`."""
        return self._get(family, value, number, "lesson")

    def view(self, family: Family, value: int, number: int) -> Recorded:
        """What the robot sees at the start of a test, for those who train or measure without playing it."""
        return self._get(family, value, number, "view")

    def close(self) -> None:
        if self._environment is not None:
            self._environment[1].close()
        self._environment = None

    def _get(self, family: Family, value: int, number: int, what: str) -> Recorded:
        name = f"{family.name}/{what}-{value}-{number}"
        return self._folder.get(name, lambda: self._record(family, value, number, what))

    def _record(self, family: Family, value: int, number: int, what: str) -> Recorded:
        tasks = family.lessons if what == "lesson" else family.tests
        task = tasks[0] if len(tasks) == 1 else tasks[value]
        variant = value if len(tasks) == 1 else 0
        first = FIRST_SEEDS[self._split] + SEEDS_A_SESSION * number
        environment = self._environment_of(task)
        for seed in range(first, first + SEEDS_A_SESSION):
            if draw_layout(task, seed).variant != variant:
                continue
            environment.reset(seed)
            frames = [_look(environment, 0)] if what == "view" else _play(environment)
            if frames is not None:
                return Recorded(environment.instruction, tuple(frames))
        raise RuntimeError(f"the oracle fails in {task.name} at all seeds from {first}: no session can be recorded")

    def _environment_of(self, task: Task) -> suite.ArenaEnvironment:
        if self._environment is None or self._environment[0] != task.name:
            self.close()
            made = suite.make(task, "pd_joint_pos", self._image_px, images=True, inverse_kinematics="predimem")
            self._environment = (task.name, made)
        return self._environment[1]


def seed_of(task: Task, variant: int, first: int) -> int:
    """The first seed from `first` on at which the task has this variant."""
    return next(s for s in range(first, first + 10_000) if draw_layout(task, s).variant == variant)


def _play(environment: suite.ArenaEnvironment) -> list[Frame] | None:
    """The keyframes of an episode of the oracle, from the reset on; None where it fails."""
    oracle = load_expert(ORACLE)(environment)
    oracle.reset()
    progress = environment.simulation.progress
    frames, before = [_look(environment, 0)], (0, 0)
    for step in range(1, environment.horizon + 1):
        result = environment.step(oracle.action())
        now = int(progress.stage[0]), int(progress.tilted[0])
        if now[0] > before[0] or now[1] > before[1]:
            frames.append(_look(environment, step))
        before = now
        if result.terminated or result.truncated:
            return frames if result.success else None
    return None


def _look(environment: suite.ArenaEnvironment, step: int) -> Frame:
    seen = environment.simulation.observe("rgb")
    images = {name: np.array(data["rgb"][0].cpu(), np.uint8) for name, data in seen.items()}
    return Frame(step, step / suite.CONTROL_HZ, images)

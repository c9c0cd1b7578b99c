"""What knows RoboMME's true state: its own planners as an expert, scripted skills for a planner's subtasks, and the
true subtask."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from predimem.core.interfaces import Expert, Policy
from predimem.core.types import ActionChunk, Observation
from predimem.envs.robomme.motions import Motion, MotionPlanner
from predimem.envs.robomme.skills import Meaning, find_meaning
from predimem.envs.robomme.suite import RobommeEnvironment

HOLDING = ("pick up", "place", "put")
AGAIN_STEPS = 40  # a subtask that is still asked for so long after its motion has ended is tried once more


def oracle(environment: RobommeEnvironment) -> Expert:
    """RoboMME's planners carry out its task list, as they did for its demonstrations."""
    return TaskListExpert(environment)


def skills(environment: RobommeEnvironment, config: Any) -> Policy:
    """RoboMME's planners carry out the planner's subtask."""
    return SkillsPolicy(environment)


def true_subtask(environment: RobommeEnvironment) -> Callable[[], str]:
    """The subgoal that RoboMME's own check waits for."""
    return lambda: environment.labels.due().label


class TaskListExpert:
    """Implements `predimem.core.interfaces.Expert`: each motion is played to its end before the next one begins, so
    that the label changes when the motion has ended, and not when RoboMME's check is content.
    """

    def __init__(self, environment: RobommeEnvironment):
        self._environment = environment
        self._motion: Motion | None = None
        self.reset()

    @property
    def subtask(self) -> str:
        return self._label

    def reset(self) -> None:
        """Before the first `action` of an episode; the environment has been reset by then."""
        _end(self._motion)
        self._motion, self._planner, self._last, self._label = None, None, None, ""
        self._indices: list[int] | None = None

    def action(self) -> np.ndarray:
        """float32 [8]. After the last motion the arm stays where it is."""
        tasks: list[dict[str, Any]] = self._environment.simulation.task_list
        if self._indices is None:
            self._indices = [index for index, task in enumerate(tasks) if not task.get("demonstration")]
            self._planner = MotionPlanner(self._environment.wrapped)
        while True:
            action = None if self._motion is None else self._motion.next_action()
            if action is not None or not self._indices:
                break
            assert self._planner is not None
            index = self._indices.pop(0)
            self._label = self._environment.labels.of(index)
            self._motion = self._planner.start(tasks[index]["solve"])
        self._last = self._environment.hold_action(self._last) if action is None else action
        return self._last


class SkillsPolicy:
    """Implements `Policy` with chunks of one action: `infer` is to be called once at every control step, and `reset`
    after each reset of the environment.

    It knows where things are and what RoboMME's multiple-choice actions do. It knows nothing of the task: neither which
    container hides which cube, nor what is due, nor how often something was done.
    - A new subtask breaks the motion off, unless its label means the same action on the same thing: a planner that
      wavers between two neighbouring cells would have it begin anew at each answer.
    - A motion that has grasped or let go of something is ended first: what is left of it moves the gripper out of the
      way. Until then the chunk's `subtask` is still the old one.
    - A subtask that is asked for long after its motion has ended is tried once more.
    - At a label that means nothing in this task the arm stays where it is.
    """

    def __init__(self, environment: RobommeEnvironment):
        self._environment = environment
        self._motion: Motion | None = None
        self.reset()

    def reset(self) -> None:
        _end(self._motion)
        self._motion, self._planner, self._last, self._subtask = None, None, None, ""
        self._meaning: Meaning | None = None  # of the subtask, when it began
        self._grip: float | None = None  # what the motion began with
        self._waited = 0

    def infer(self, observation: Observation, subtask: str) -> ActionChunk:
        """actions: float32 [1, 8]."""
        action = None
        if subtask != self._subtask and self._means_the_same(subtask):
            self._subtask = subtask
        if subtask == self._subtask or self._has_gripped():
            action = None if self._motion is None else self._motion.next_action()
        if action is None and (subtask != self._subtask or self._waited >= AGAIN_STEPS):
            action = self._begin(subtask)
        self._waited = self._waited + 1 if action is None else 0
        self._last = self._environment.hold_action(self._last) if action is None else action
        return ActionChunk(observation.step, self._last[None], self._subtask)

    def _has_gripped(self) -> bool:
        """Whether the motion is about holding something, and has opened or closed the gripper since it began."""
        if self._motion is None or self._motion.done or self._last is None:
            return False
        return self._subtask.startswith(HOLDING) and self._last[-1] != self._grip

    def _means_the_same(self, subtask: str) -> bool:
        """Whether the motion that is under way is what this label asks for, too."""
        if self._motion is None or self._motion.done or self._meaning is None:
            return False
        return self._meaning.is_same(self._find(subtask))

    def _find(self, subtask: str) -> Meaning | None:
        if self._planner is None:
            self._planner = MotionPlanner(self._environment.wrapped)
        return find_meaning(subtask, self._environment.task, self._planner)

    def _begin(self, subtask: str) -> np.ndarray | None:
        _end(self._motion)
        self._subtask, self._waited, self._motion = subtask, 0, None
        self._meaning = self._find(subtask)
        if self._meaning is None:
            return None
        assert self._planner is not None
        self._motion = self._planner.start(self._meaning.solve)
        action = self._motion.next_action()
        self._grip = None if action is None else float(action[-1])  # RoboMME's motions open the gripper first of all
        return action


def _end(motion: Motion | None) -> None:
    if motion is not None:
        motion.break_off()

"""Carries out the steps of a decomposition in the arena, from what its cameras see and its gripper feels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from datagen.decompose.steps import Step
from datagen.execution.checks import Order, PourWatch, unfulfilled
from datagen.execution.config import ExecutionConfig
from datagen.execution.references import UnresolvedError, resolved
from datagen.execution.timing import Stopwatch
from datagen.experts.scripted.execute import skill
from datagen.grasp.types import GraspDetector
from datagen.perception.furniture import NotSeenError
from datagen.perception.scene import PerceivedScene
from datagen.perception.views import look
from predimem.envs.arena.robot.arm import OPEN, Arm, Motion
from predimem.envs.arena.robot.rotations import top_down
from predimem.envs.arena.subtasks import Skill

SETTLE_STEPS = 10  # after a skill, for things to come to rest,
REST_STEPS = 20  # and after the last one
RETREAT_M = 0.30  # another attempt begins with the gripper this high
# From here the hand camera sees the table, and the arm hides nothing of it from agentview.
LOOK_M, LOOK_YAW_RAD = (-0.33, 0.0, 0.42), np.pi / 2
LOOK_DOWN_M = 0.35  # the TCP is this high over an object that the hand camera looks down at


class GiveUp(RuntimeError):
    """The episode cannot be mended. Its text is the cause, in words that can be counted."""


class Executor:
    """Plays the steps of one episode. step: the index of the step that is being done; retries: step -> how many.

    The environment is asked for images and for what the arm feels, for nothing else.
    """

    def __init__(self, env: Any, detector: GraspDetector, config: ExecutionConfig, watch: Stopwatch | None = None):
        """env: an `ArenaEnv` of one world, made with `depth_px`, that has just been reset."""
        self._config = config
        self._watch = watch or Stopwatch()
        self._arm = Arm(env)
        self._scene = PerceivedScene(env.task.objects, env.task.fixtures, lambda: look(env), detector)
        self._pours = PourWatch()
        self._carried = ""
        self._meant: dict[str, str] = {}
        self.step = 0
        self.retries: Counter[int] = Counter()

    def action(self) -> np.ndarray:
        """float32 [A] for this control step, in the environment's control mode."""
        return self._arm.action()

    def run(self, steps: Sequence[Step]) -> Motion:
        """All steps, one control step for every `yield`. Raises GiveUp."""
        self._look()
        scene = self._scene
        at_start = {place: frozenset(o for o in scene.objects if scene.inside(o, place)) for place in scene.places}
        for self.step, step in enumerate(steps):
            try:
                order = self._order(step, at_start)
            except UnresolvedError as error:
                raise GiveUp(f"reference: {error}") from None
            yield from self._carry_out(order)
            self._carried = order.object if order.skill in (Skill.MOVE, Skill.POUR) else ""
        yield from self._arm.wait(REST_STEPS)

    def _order(self, step: Step, at_start: dict[str, frozenset[str]]) -> Order:
        if step.target not in self._meant:  # what is meant stays so, though it looks otherwise after a while
            self._meant[step.target] = resolved(step.target, self._scene, at_start)
        target = self._meant[step.target]
        if step.planner in (Skill.OPEN, Skill.CLOSE):
            return Order(step.planner, target)
        return Order(step.planner, target, target if step.planner is Skill.MOVE else self._carried)

    def _carry_out(self, order: Order) -> Motion:
        """Do, look, and do again until nothing speaks against its being done."""
        problem = ""
        for attempt in range(self._config.attempts):
            if attempt:
                self.retries[self.step] += 1
                yield from self._watched(self._retreat(order))
            self._pours.pours = 0
            try:
                yield from self._watched(self._attempt(order))
                self._look()
                problem = unfulfilled(order, self._arm, self._scene, self._pours.pours)
            except NotSeenError as error:
                problem = str(error)
            if not problem:
                self._scene.forget_grasps()
                return
            if order.skill is Skill.POUR and self._pours.pours:
                break  # once more would be once too often
        raise GiveUp(f"{order.skill.value} {order.target}: {problem}")

    def _attempt(self, order: Order) -> Motion:
        scene = self._scene
        scene.reaching_for = order.object
        if order.object and scene.held != order.object:
            if order.object not in scene.seen:
                yield from self._look_around()
            elif scene.is_furnished(order.object) and not scene.in_hand_view(order.object):
                yield from self._look_down(order.object)  # agentview alone does not see what is behind it
        yield from skill(self._arm, scene, order)
        yield from self._arm.wait(SETTLE_STEPS)

    def _retreat(self, order: Order) -> Motion:
        """Out of the way, and another look."""
        if self._scene.held:
            yield from self._arm.rise(RETREAT_M)
            self._look()
            return
        yield from self._arm.grip(OPEN, steps=4)
        yield from self._look_around()
        if order.object in self._scene.seen and not self._scene.in_hand_view(order.object):
            yield from self._look_down(order.object)

    def _look_around(self) -> Motion:
        """From where the gripper sees the table, and agentview everything."""
        yield from self._arm.rise(LOOK_M[2])
        yield from self._arm.travel(np.array(LOOK_M), top_down(LOOK_YAW_RAD))
        self._look()

    def _look_down(self, object: str) -> Motion:
        """From above an object; where the arm is in agentview's way then, what that saw before still counts."""
        x, y, _ = self._scene.position_m(object)
        yield from self._arm.rise(LOOK_DOWN_M)
        yield from self._arm.travel(np.array([x, y, self._arm.position[2]]), self._arm.rest_rotation)
        yield from self._arm.move(np.array([x, y, LOOK_DOWN_M]))
        with self._watch.stage("look"):
            self._scene.look_closer()

    def _watched(self, motion: Motion) -> Motion:
        for _ in motion:
            yield
            self._scene.follow(self._arm)
            self._pours.follow(self._scene)

    def _look(self) -> None:
        with self._watch.stage("look"):
            self._scene.look()

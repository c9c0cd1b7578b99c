"""The scripted skills as a low-level policy: they know the true state and carry out what a planner says."""

from __future__ import annotations

from typing import Any

from datagen.experts.scripted.break_off import FREE_M, break_off
from datagen.experts.scripted.execute import skill
from datagen.experts.scripted.solver import SETTLE_STEPS
from datagen.experts.scripted.subtask_names import named
from datagen.experts.scripted.true_scene import TrueScene
from predimem.core.types import ActionChunk, AmbiguousLabel, Observation
from predimem.envs.arena.robot.arm import Arm, Motion
from predimem.envs.arena.subtasks import Skill, Subtask

POUR_AGAIN_STEPS = 30  # a pour that is still asked for so long after it has ended is done once more


class ScriptedPolicy:
    """Implements `Policy` with chunks of one action: `infer` is to be called once at every control step, and
    `reset` after each reset of the environment.

    It knows where things are and nothing of the task: neither its order, nor what is due, nor how often was poured.
    - A new subtask begins when the gripper is free for it: a motion that has reached its goal is ended as always, any
      other is broken off (`break_off`). Until then the chunk's `subtask` is still the old one.
    - A subtask that is asked for after its motion has ended is tried again while its goal is not reached. A pour
      leaves no trace that would show that it was done: it is done again after `POUR_AGAIN_STEPS`.
    - At a label that the task does not have, the arm stands still until there is another; at one that could mean
      several things as well, and the chunk says so (`refusal`).
    """

    def __init__(self, env: Any):
        """env: an `ArenaEnv` of one world, or a wrapper around one."""
        self._env = env.unwrapped
        self.reset()

    def reset(self) -> None:
        self._arm, self._scene = Arm(self._env), TrueScene(self._env)
        self._wanted: tuple[Subtask, str] | None = None  # and what the planner called it
        self._doing: tuple[Subtask, str] | None = None
        self._motions, self._moving = 0, False
        self._playing = self._play()
        self._meant: dict[str, Subtask | AmbiguousLabel | None] = {}

    def infer(self, observation: Observation, subtask: str) -> ActionChunk:
        """actions: float32 [1, A], in the environment's control mode."""
        if subtask not in self._meant:
            self._meant[subtask] = named(self._env.task, self._env.variant(), subtask)
        meant = self._meant[subtask]
        if not isinstance(meant, Subtask):
            return ActionChunk(observation.step, self._arm.action()[None], subtask, refusal=meant)
        self._wanted = meant, subtask
        next(self._playing)
        assert self._doing is not None
        label = subtask if self._doing[0] == meant else self._doing[1]
        return ActionChunk(observation.step, self._arm.action()[None], label)

    def still(self, observation: Observation) -> ActionChunk:
        """Instead of `infer` at a control step at which the arm shall stand still: what it was doing waits."""
        return ActionChunk(observation.step, self._arm.action()[None], self._doing[1] if self._doing else "")

    @property
    def doing(self) -> Subtask | None:
        """The subtask of the last motion; None before the first one."""
        return self._doing[0] if self._doing else None

    @property
    def motion(self) -> int | None:
        """The number of the motion that goes on, leaving it included; None while the actor waits between two."""
        return self._motions if self._moving else None

    @property
    def arm(self) -> Arm:
        """For reading: where the gripper is, and what it is commanded."""
        return self._arm

    def _play(self) -> Motion:
        """Without end: one subtask after the other, as they are wanted."""
        while True:
            assert self._wanted is not None  # `infer` has set it
            self._doing = self._wanted
            subtask = self._doing[0]
            motion = self._attempt(subtask)
            self._motions, self._moving = self._motions + 1, True
            for _ in motion:
                yield
                if not self._still(subtask):
                    done = self._reached(subtask)
                    yield from motion if done else break_off(self._arm, self._scene, subtask)
                    break
            else:
                self._moving = False
                yield from self._await(subtask)

    def _attempt(self, subtask: Subtask) -> Motion:
        """The skill, except where it would take what it has done before in its gripper again."""
        if subtask.skill not in (Skill.MOVE, Skill.PLACE) or not self._reached(subtask):
            yield from skill(self._arm, self._scene, subtask)

    def _await(self, subtask: Subtask) -> Motion:
        """Keep still until another subtask is wanted, or this one once more."""
        waited = 0
        while self._still(subtask) and not self._again(subtask, waited):
            yield
            waited += 1
        if self._still(subtask):
            yield from self._arm.rise(FREE_M)

    def _again(self, subtask: Subtask, waited: int) -> bool:
        if subtask.skill is Skill.POUR:
            return waited >= POUR_AGAIN_STEPS
        return waited >= SETTLE_STEPS and not self._reached(subtask)

    def _still(self, subtask: Subtask) -> bool:
        return self._wanted is not None and self._wanted[0] == subtask

    def _reached(self, subtask: Subtask) -> bool:
        """Whether the goal is to be seen in the world now. That of a pour never is."""
        return subtask.skill is not Skill.POUR and self._scene.holds(subtask.done)

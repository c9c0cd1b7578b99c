"""What knows the true state in the interference benchmark: an oracle actor, which carries out an answer whatever the
truth is, and the truth itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from datagen.experts.scripted.policy import ScriptedPolicy
from datagen.experts.scripted.subtask_names import named
from predimem.agent.config import AgentConfig
from predimem.core.interfaces import Policy
from predimem.core.types import ActionChunk, Observation
from predimem.envs.arena.subtasks import Skill, Subtask
from predimem.envs.interference.families import Family
from predimem.envs.interference.videos import VideoInterferenceEnvironment
from predimem.envs.robomme import expert as robomme


def skills(environment: Any, config: AgentConfig) -> Policy:
    """In RoboMME's tasks, its motion planners, which carry out a subtask."""
    if isinstance(environment, VideoInterferenceEnvironment):
        return robomme.skills(environment.inner, config)
    return AnswerPolicy(environment)


def true_subtask(environment: Any) -> Callable[[], str]:
    """The right answer, or the subtask that RoboMME's own check waits for."""
    if isinstance(environment, VideoInterferenceEnvironment):
        return robomme.true_subtask(environment.inner)
    return lambda: environment.family.answers[environment.value]


class AnswerPolicy:
    """Implements `Policy`: it does one after the other what the test would ask for if the answer were right.

    It knows where things are and what has been done, and nothing of the lesson: a wrong answer is carried out as well
    as a right one. At words that are no answer of the family the arm stands still.
    """

    def __init__(self, environment: Any):
        """environment: an `InterferenceEnvironment`; `reset` is to be called after each of its resets."""
        self._environment = environment
        self._family: Family = environment.family
        self._policy: ScriptedPolicy | None = None

    def reset(self) -> None:
        self._policy = ScriptedPolicy(self._environment.simulation)
        self._answer, self._stage = "", 0

    def infer(self, observation: Observation, subtask: str) -> ActionChunk:
        """actions: float32 [1, A]; subtask: an answer."""
        assert self._policy is not None, "reset() comes first"
        if subtask != self._answer:
            self._answer, self._stage = subtask, 0
        chunk = self._policy.infer(observation, self._label(subtask))
        return replace(chunk, subtask=subtask)

    def _label(self, answer: str) -> str:
        if answer not in self._family.answers:
            return ""
        stages = self._family.subtasks(self._family.answers.index(answer))
        world = self._environment.simulation.world()
        while self._stage < len(stages) - 1 and bool(stages[self._stage].done(world)[0]):
            self._stage += 1
        return self._known(stages[self._stage])

    def _known(self, subtask: Subtask) -> str:
        """The label of the subtask, or of a pour that the scene knows: a pour too many is poured like the last one."""
        simulation = self._environment.simulation
        task, own = simulation.task, simulation.variant()
        if named(task, own, subtask.label) is None and subtask.skill is Skill.POUR:
            return [s.label for s in own.subtasks if s.skill is Skill.POUR][-1]
        return subtask.label

"""Which subtask is due, also where an earlier one has come undone: a box that fell out again has to go back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from predimem.envs.arena.fixtures import JOINTS, PLACES
from predimem.envs.arena.predicates import GRASPED_M, RESTING_M_S, Held, Opened
from predimem.envs.arena.subtasks import Skill, Subtask

if TYPE_CHECKING:
    from predimem.envs.arena.world import World

LOOK_STEPS = 4  # control steps between two looks at what may have come undone, which take a tenth of a step each


class DueStage:
    """Follows the episodes of one world.

    stage: index of the subtask that is due; the number of stages when nothing is left to do. It is the one that
        `Progress` waits for, in a pause the one before it. It goes back to a subtask that was passed and whose lasting
        condition does not hold any more, until that subtask is done again. Whatever else the gripper holds is put where
        it belongs first, and where the drawer or the door has been shut since, opening it comes before.
    """

    def __init__(self, env: Any):
        """env: an `ArenaEnv`; with several worlds, only world 0 is followed."""
        self._env = env
        self.reset()

    def reset(self) -> None:
        """At the beginning of an episode, and where a saved state is taken up."""
        self._undone: set[int] = set()
        self.stage = int(self._env.progress.stage[0]) - self._env.waiting

    def look(self, world: World) -> None:
        """To be called after each control step."""
        stage = int(self._env.progress.stage[0])
        if self._env.visited or self._env.waiting:
            self.stage = stage - self._env.waiting
            return
        self.stage = stage
        if not self._undone and int(self._env.elapsed_steps[0]) % LOOK_STEPS:
            return
        variant = self._env.variant()
        for k, lasting in enumerate(variant.lasting[:stage]):
            if lasting is None:
                continue
            if k not in self._undone:
                if not bool(lasting(world)[0]):
                    self._undone.add(k)
            elif bool(variant.subtasks[k].done(world)[0]):
                self._undone.remove(k)
        again = (self._again(k, world) for k in sorted(self._undone))
        self.stage = next((due for due in again if due is not None), stage)

    def _again(self, stage: int, world: World) -> int | None:
        """What has to be done first to do this stage again; None if it cannot be begun now."""
        subtasks, lasting = self._env.variant().subtasks, self._env.variant().lasting[stage]
        subtask = subtasks[stage]
        in_gripper = bool(subtask.object) and _in_gripper(subtask.object, world)
        if not in_gripper:
            still = not subtask.object or float(world.speed_m_s[subtask.object][0]) <= RESTING_M_S
            if not still or bool(lasting(world)[0]):
                return None  # it is on its way, or it has come back by itself
            if any(bool(Held(name)(world)[0]) for name in self._env.task.objects):
                return None
        joint = PLACES[subtask.target].frame if subtask.skill is Skill.PLACE else ""
        if joint not in JOINTS or in_gripper or bool(Opened(joint)(world)[0]):
            return stage
        return _opening(subtasks[:stage], joint)


def _in_gripper(name: str, world: World) -> bool:
    return float((world.position_m[name] - world.tcp_m).norm()) <= GRASPED_M


def _opening(subtasks: tuple[Subtask, ...], joint: str) -> int | None:
    """The last of these subtasks that opens a joint; None if there is none."""
    opening = [i for i, s in enumerate(subtasks) if s.skill is Skill.OPEN and s.target == joint]
    return opening[-1] if opening else None

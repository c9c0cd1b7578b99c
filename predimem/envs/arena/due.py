"""Which subtask is due, also where an earlier one has come undone: a box that fell out again has to go back."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from predimem.envs.arena.fixtures import DOOR, JOINTS, PLACES
from predimem.envs.arena.predicates import DOOR_OPEN_RAD, DRAWER_OPEN_M, GRASPED_M, LIFTED_M, RESTING_M_S, Inside
from predimem.envs.arena.subtasks import Skill, Subtask

if TYPE_CHECKING:
    from predimem.envs.arena.world import World

LOOK_STEPS = 4  # control steps between two looks at what may have come undone, which take a tenth of a step each
STILL_STEPS = 10  # for so long a thing has to lie still before it is due again
CLOSED_GAP_M = 0.075  # between the fingers, at most, when they hold something
SHUT_SHARE = 0.75  # of the way: a drawer or a door that is less open has to be opened first


class DueStage:
    """Follows the episodes of one world.

    stage: index of the subtask that is due; the number of stages when nothing is left to do. It is the one that
        `Progress` waits for, in a pause the one before it. It goes back to a subtask that was passed and whose lasting
        condition does not hold any more, until that subtask is done again. Whatever else the gripper holds is put where
        it belongs first, and where the drawer or the door has been shut since, opening it comes before. What is to be
        placed or poured and lies still elsewhere is picked up first. While somebody else moves something, and in
        several worlds at once, it does not go back.
    """

    def __init__(self, env: Any):
        """env: an `ArenaEnv`; with several worlds, only world 0 is followed."""
        self._env = env
        self.reset()

    def reset(self) -> None:
        """At the beginning of an episode, and where a saved state is taken up."""
        self._undone: dict[int, int] = {}  # stage -> for how many control steps its thing has lain still
        self._lost: dict[str, int] = {}  # what should be in the gripper -> for how many it has lain still elsewhere
        self._lay_m: dict[str, float] = {}  # and how high its lowest point is there
        self.stage = self._passed - self._env.waiting

    @property
    def again(self) -> bool:
        """Whether the subtask that is due was passed before and has come undone, or leads to one."""
        return self.stage < self._passed and not self._env.waiting

    def look(self, world: World) -> None:
        """To be called after each control step."""
        before, self.stage = self.stage, self._passed - self._env.waiting
        if self._env.num_envs > 1 or self._env.visited or self._env.waiting:
            return
        self._look_for_undone(world, before)
        self.stage = self._fetched_first(self.stage, world, before)

    def _look_for_undone(self, world: World, before: int) -> None:
        if not self._undone and int(self._env.elapsed_steps[0]) % LOOK_STEPS:
            return
        variant, stage = self._env.variant(), self.stage
        for k, lasting in enumerate(variant.lasting[:stage]):
            if lasting is not None and k not in self._undone and not bool(lasting(world)[0]):
                self._undone[k] = 0
        for k in tuple(self._undone):
            if bool(variant.subtasks[k].done(world)[0]):
                del self._undone[k]
            else:
                self._undone[k] = 0 if _moves(variant.subtasks[k], world) else self._undone[k] + 1
        held = next((name for name in self._env.task.objects if _in_gripper(name, world)), "")
        for k in sorted(self._undone):
            if self._can_begin(k, world, held, before):
                self.stage = self._first(k, world, before)
                return

    def _fetched_first(self, k: int, world: World, before: int) -> int:
        """Stage k, or the one that picks up what it needs in the gripper."""
        subtasks = self._env.variant().subtasks
        name = subtasks[k].object if k < len(subtasks) and subtasks[k].skill in (Skill.PLACE, Skill.POUR) else ""
        picks = [i for i, s in enumerate(subtasks[:k]) if s.skill is Skill.MOVE and s.object == name]
        if not picks:
            self._lost.clear()
            return k
        near = _near_gripper(name, world)
        if near and name not in self._lost:
            return k
        bottom_m = float(world.bottom_m(name)[0])
        if near:
            if bottom_m >= self._lay_m.get(name, -math.inf) + LIFTED_M:
                self._lost.clear()
                return k
            return picks[-1] if before == picks[-1] else k
        inside = subtasks[k].skill is Skill.PLACE and bool(Inside(name, subtasks[k].target)(world)[0])
        if inside:  # and only the gripper has yet to leave it
            self._lost.clear()
            return k
        still = max(self._lost.get(name, 0), self._undone.get(k, 0)) + 1
        self._lost[name] = 0 if _moves(subtasks[k], world) else still
        if self._lost[name]:
            self._lay_m[name] = bottom_m
        return picks[-1] if before == picks[-1] or self._lost[name] >= STILL_STEPS else k

    @property
    def _passed(self) -> int:
        return int(self._env.progress.stage[0])

    def _can_begin(self, k: int, world: World, held: str, before: int) -> bool:
        """Whether stage k can be done again now; it was begun if it was due `before`."""
        subtask, lasting = self._env.variant().subtasks[k], self._env.variant().lasting[k]
        if held:
            return held == subtask.object
        assert lasting is not None
        if bool(lasting(world)[0]):
            return False  # it is back in its place, and only the gripper has yet to leave it
        return before == k or self._undone[k] >= STILL_STEPS

    def _first(self, k: int, world: World, before: int) -> int:
        """Stage k, or the one that opens what it needs open."""
        subtasks = self._env.variant().subtasks
        joint = PLACES[subtasks[k].target].frame if subtasks[k].skill is Skill.PLACE else ""
        opening = [i for i, s in enumerate(subtasks[:k]) if s.skill is Skill.OPEN and s.target == joint]
        if joint not in JOINTS or not opening:
            return k
        needed = DOOR_OPEN_RAD if joint == DOOR else DRAWER_OPEN_M
        shut = float(world.joint[joint][0]) < needed * (1.0 if before == opening[-1] else SHUT_SHARE)
        return opening[-1] if shut else k


def _moves(subtask: Subtask, world: World) -> bool:
    return bool(subtask.object) and float(world.speed_m_s[subtask.object][0]) > RESTING_M_S


def _in_gripper(name: str, world: World) -> bool:
    return _near_gripper(name, world) and float(world.finger_gap_m[0]) <= CLOSED_GAP_M


def _near_gripper(name: str, world: World) -> bool:
    return float((world.position_m[name][0] - world.tcp_m[0]).norm()) <= GRASPED_M

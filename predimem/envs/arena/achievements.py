"""What the robot achieved although it was not due: opened a drawer again, put something down too early.

This is seen in the true state and needs no planner that says what it is about to do, so that it can be counted
for every agent, the reactive one above all (RoboMemArena, arXiv:2605.10921, Table S3).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

LOOK_STEPS = 4  # between two looks, in control steps
AWAY_LOOKS = 5  # a goal counts as reached anew only after it was missed for so long (1 s)
AGAIN, AHEAD, ELSEWHERE = "again", "ahead", "elsewhere"


@dataclass
class _Goal:
    """One predicate that the robot may fulfil, whether it is due or not.

    done: the predicate.
    stages: the stages of this episode that it ends.
    other_stages: those of the task's other variants.
    """

    subtask: Any
    done: Any
    stages: list[int] = field(default_factory=list)
    other_stages: list[int] = field(default_factory=list)
    away: int = 0


class UndueAchievements:
    """Watches one episode for stages that are achieved though they are not due. They are told as "kind: label".

    `again`: an earlier stage asked for it and it was done, such as a drawer that was opened before, or an object in the
    gripper that is not the one of the stage that is due.
    `ahead`: only a later stage asks for it.
    `elsewhere`: it would be due if the hidden state were another, such as the object in the other drawer.

    Pours into the true receiver are not among them: the environment counts them itself. Nor is closing something
    again, or picking up again what was dropped.
    """

    def __init__(self, simulation: Any):
        """simulation: an `ArenaEnv` of one world that has been reset."""
        self._simulation = simulation
        self._due = 0
        self._goals = list(_goals(simulation.task, simulation.variant()))

    def look(self, step: int) -> tuple[str, ...]:
        """To be called after each control step; what was achieved since the last look."""
        if step % LOOK_STEPS:
            return ()
        due = int(self._simulation.progress.stage[0])
        since, self._due = self._due, due
        world = self._simulation.world()
        subtasks = self._simulation.variant().subtasks
        achieved = []
        for goal in self._goals:
            if not self._newly(goal, world):
                continue
            held = subtasks[min(due, len(subtasks) - 1)].object
            kind = _kind(goal, since, due, held)
            if kind:
                achieved.append(f"{kind}: {goal.subtask.label}")
        return tuple(achieved)

    def _newly(self, goal: _Goal, world: Any) -> bool:
        if bool(goal.done(world)[0]):
            away, goal.away = goal.away, 0
            return away >= AWAY_LOOKS
        if goal.away >= AWAY_LOOKS:  # it is away for long enough, whatever it has left behind
            return False
        stays = goal.done.lasting()
        if stays is None or not bool(stays(world)[0]):  # else the gripper is at an object that is in its place
            goal.away += 1
        return False


def _goals(task: Any, own: Any) -> Iterator[_Goal]:
    """One for each predicate of the task's variants, but pours into the true receiver; into another, the pouring."""
    found: dict[Any, _Goal] = {}
    for variant in (own, *(v for v in task.variants if v is not own)):
        for stage, subtask in enumerate(variant.subtasks):
            pours = subtask.skill == "Pour"
            if pours and variant.pour == own.pour:
                continue
            done = variant.pour if pours else subtask.done
            goal = found.setdefault(done, _Goal(subtask, done))
            (goal.stages if variant is own else goal.other_stages).append(stage)
    yield from found.values()


def _kind(goal: _Goal, since: int, due: int, held: str) -> str:
    """Empty where it was due at some time from `since` to `due`, or is of no account."""
    skill, stages = goal.subtask.skill, goal.stages
    if any(since <= stage <= due for stage in stages):
        return ""
    if skill == "Move" and goal.subtask.object == held:
        return ""
    if not stages:
        if skill == "Close":
            return ""
        return AHEAD if min(goal.other_stages) > due + 1 else ELSEWHERE
    if min(stages) < since:
        return AGAIN if skill in ("Open", "Move") else ""
    return AHEAD

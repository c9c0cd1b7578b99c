"""Checks whether steps can be carried out, by keeping track of what the gripper holds and what stands open."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from datagen.decompose.steps import Step
from datagen.decompose.vocabulary import ROLE_OF, Role, Target, Vocabulary
from predimem.envs.arena.subtasks import Skill


def check(steps: Sequence[Step], vocabulary: Vocabulary) -> list[str]:
    """What is wrong with the steps, in sentences that say what to change; an empty list if they can be carried out.

    At first every joint is closed and the gripper holds nothing. After a step that cannot be done the check goes on
    as if it had been done, so that one mistake is not reported many times.
    """
    if not steps:
        return ["there are no steps: give at least one"]
    problems = []
    ids = [step.step_id for step in steps]
    if ids != list(range(1, len(steps) + 1)):
        problems.append(f"step_id must count 1, 2, ... {len(steps)} in order; got {', '.join(map(str, ids))}")
    kitchen = _Kitchen(vocabulary)
    for step in steps:
        where = f"step {step.step_id} ({step.planner} {step.target})"
        target = _target(step, vocabulary)
        faults = [target] if isinstance(target, str) else kitchen.play(step.planner, target)
        problems += [f"{where}: {fault}" for fault in faults]
    return problems


def _target(step: Step, vocabulary: Vocabulary) -> Target | str:
    """The target of a step, or a sentence that says what is wrong with it."""
    role = ROLE_OF[step.planner]
    known = ", ".join(vocabulary.names(role)) or "none in this scene"
    target = vocabulary.find(step.target)
    if target is None:
        return f"there is no {step.target!r} here; the targets of {step.planner} are: {known}"
    if role not in target.roles:
        kind = ", ".join(sorted(target.roles))
        return (
            f"{step.planner} needs a target of the kind {role}; {step.target} is of the kind {kind}. There are: {known}"
        )
    return target


@dataclass
class _Kitchen:
    """The state of the scene, as far as the steps tell it.

    held: the object in the gripper.
    open: the names of the joints that stand open.
    inside: object -> the place that a step put it into.
    seen: the names of the joints that have been open at some time.
    """

    vocabulary: Vocabulary
    held: Target | None = None
    open: set[str] = field(default_factory=set)
    inside: dict[str, Target] = field(default_factory=dict)
    seen: set[str] = field(default_factory=set)

    def play(self, skill: Skill, target: Target) -> list[str]:
        if skill is Skill.MOVE:
            return self._move(target)
        if skill is Skill.PLACE:
            return self._place(target)
        if skill is Skill.POUR:
            return self._pour(target)
        return self._turn(target, opens=skill is Skill.OPEN)

    def _move(self, target: Target) -> list[str]:
        faults = []
        if self.held:
            faults.append(f"the gripper already holds {self.held.name}: place it first")
        shut = self._shut(self.inside[target.name]) if target.name in self.inside else ""
        if shut:
            faults.append(f"{target.name} was put behind {shut}, which is closed: open that first")
        self.held = target
        self.inside.pop(target.name, None)
        return faults

    def _place(self, target: Target) -> list[str]:
        faults = []
        if not self.held:
            faults.append("the gripper holds nothing: Move to the object to be placed first")
        shut = self._shut(target)
        if shut:
            faults.append(f"{shut} is closed: Open it before this object is picked up, with an empty gripper")
        faults += self._full(target)
        if self.held:
            self.inside[self.held.name] = target
        self.held = None
        return faults

    def _pour(self, target: Target) -> list[str]:
        if not self.held:
            return ["the gripper holds nothing: Move to what is to be poured first"]
        if Role.BOTTLE not in self.held.roles:
            bottles = ", ".join(self.vocabulary.names(Role.BOTTLE)) or "nothing here"
            return [f"the gripper holds {self.held.name}, which does not pour; what pours: {bottles}"]
        if self.held == target:
            return [f"the gripper holds {target.name} itself: it cannot be poured over itself"]
        return []

    def _turn(self, target: Target, opens: bool) -> list[str]:
        faults = []
        word = "opened" if opens else "closed"
        if self.held:
            faults.append(
                f"the gripper holds {self.held.name}: things are {word} with an empty gripper, so place it first"
            )
        if opens and target.name in self.open:
            faults.append(f"{target.name} is open already")
        elif opens and self._overlap(target):
            faults.append(f"{self._overlap(target)} stands open and may be the same: close it first")
        elif not opens and target.name not in self.open:
            faults.append(f"{target.name} is not open: close by the name that it was opened by, and only once")
        unseen = [name for name in target.candidates if name not in self.seen]
        if opens and unseen:
            faults.append(f"{target.name} cannot be told yet: first open and close {', '.join(unseen)} to look inside")
        (self.open.add if opens else self.open.discard)(target.name)
        self.seen.add(target.name)
        return faults

    def _overlap(self, target: Target) -> str:
        """An open joint that may be the same as this one because one of the two is a reference; "" if there is none."""
        for name in sorted(self.open):
            other = self.vocabulary.find(name)
            if name in target.candidates or (other and target.name in other.candidates):
                return name
        return ""

    def _full(self, target: Target) -> list[str]:
        """A fault where a place, or the drawer or microwave around it, has no room for one more."""
        doors = self.vocabulary.doors(target)
        around = self.vocabulary.find(doors[0]) if len(doors) == 1 else None
        full = [place for place in (target, around) if place and len(self._in(place)) >= self._room(place)]
        if not full:
            return []
        there = self._in(full[0])
        instead = f": Place it in {around.name}, where there is room beside" if around and around not in full else ""
        objects = "one object" if len(there) == 1 else f"{len(there)} objects"
        are = f"{' and '.join(there)} {'is' if len(there) == 1 else 'are'}"
        return [f"{full[0].name} has room for {objects}, and {are} in it already{instead}"]

    def _in(self, place: Target) -> list[str]:
        """The objects that were put into a place or, if it opens, behind it."""
        return sorted(name for name, where in self.inside.items() if self._is_in(where, place))

    def _is_in(self, where: Target, place: Target) -> bool:
        return where == place or (Role.JOINT in place.roles and self.vocabulary.doors(where) == (place.name,))

    def _room(self, place: Target) -> float:
        """Of a drawer or the microwave: its own room or that of its halves, whichever is more."""
        halves = [half for half in self.vocabulary.parts(place) if not half.candidates]
        own = float("inf") if place.room is None else place.room
        return max(own, sum(half.room or 0 for half in halves)) if Role.JOINT in place.roles else own

    def _shut(self, target: Target) -> str:
        """The closed joint that keeps the gripper from reaching into a place; "" if there is none."""
        if target.name in self.open:
            return ""
        doors = self.vocabulary.doors(target)
        if Role.JOINT in target.roles and target.candidates and set(target.candidates) <= self.open:
            return ""
        return next((door for door in doors if door not in self.open), "")

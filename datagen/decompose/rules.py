"""Decomposition without a model: rules for the instructions of the arena and for other ways to say them.

Deterministic and without dependencies; it does not look at the picture. What goes without saying is added: a
drawer is opened before something is put into it, an object picked up before it is placed, and all drawers are
looked into before "the empty one" is used. Every word has to be known and every thing that is named has to be
used, so that what is not understood is an error; wrong steps are still possible (docs/datagen.md has figures).
"""

from __future__ import annotations

from datagen.decompose.check import check
from datagen.decompose.clauses import Clause, read_clauses
from datagen.decompose.events import Event
from datagen.decompose.lexer import RulesError, read_tokens
from datagen.decompose.meaning import read_events
from datagen.decompose.steps import Step
from datagen.decompose.vocabulary import Role, Target, Vocabulary
from predimem.envs.arena.subtasks import Skill

__all__ = ["RulesError", "decompose"]

ORDINALS = ("first", "second", "third")


def decompose(instruction: str, vocabulary: Vocabulary) -> tuple[Step, ...]:
    """The steps that an instruction asks for; `check` has nothing against them.

    Raises RulesError (a ValueError) with what was understood where the rest was not.
    """
    try:
        if not instruction.strip():
            raise RulesError("the instruction is empty")
        clauses = read_clauses(read_tokens(instruction, vocabulary), vocabulary)
        events = read_events(clauses, vocabulary)
        if not events:
            raise RulesError("it asks for nothing that the rules know: put, pick up, pour, open, close or look into")
        composer = _Composer(vocabulary)
        for event in events:
            composer.play(event)
        steps = composer.finish()
        problems = check(steps, vocabulary)
        if problems:
            read = ", ".join(f"{step.planner} {step.target}" for step in steps)
            raise RulesError(f"read as {read}: {'; '.join(problems)}")
        _check_all_used(clauses, steps, vocabulary)
    except RulesError as error:
        raise RulesError(
            f"the rules do not understand {instruction!r}: {error}. Say it more plainly, or ask a model (--endpoint)"
        ) from None
    return steps


class _Composer:
    """Plays events on what is held, open and placed, and adds the steps that go without saying."""

    def __init__(self, vocabulary: Vocabulary):
        self.vocabulary = vocabulary
        self.steps: list[Step] = []
        self.held = ""
        self.picked: tuple[str, ...] = ()  # asked for, but not needed yet: hands are full late
        self.open: list[str] = []
        self.seen: set[str] = set()
        self.at: dict[str, str] = {}  # object -> where it was put

    def play(self, event: Event) -> None:
        if event.verb == "put":
            self._put(event.things[0], event.where or self._beside(event))
        elif event.verb == "pour":
            self._pour(event)
        elif event.verb == "pick":
            self.picked += event.things
        else:
            for joint in event.things:
                if event.verb != "close":
                    self._open(joint)
                if event.verb != "open":
                    self._close(joint)

    def finish(self) -> tuple[Step, ...]:
        for name in self.picked:
            self._take(name)
        return tuple(self.steps)

    def _put(self, name: str, place: str) -> None:
        if self.at.get(name) == place and self.held != name:
            return  # said twice
        target = self._target(place)
        for door in self.vocabulary.doors(target):
            self._open(door)
        self._take(name)
        self._add(Skill.PLACE, target, f"place the {self._call(name)} {_in(target)} the {target.called[0]}")
        self.held, self.at[name] = "", place

    def _pour(self, event: Event) -> None:
        (bottle,), receiver = event.things, event.where
        place = self.at.get(receiver, "")
        if Role.RECEIVER not in self._target(receiver).roles and place and Role.RECEIVER in self._target(place).roles:
            receiver = place  # over the butter in the pan: into the pan
        self._take(bottle)
        target = self._target(receiver)
        for i in range(event.count):
            often = f", {ORDINALS[i]} time" if event.count > 1 and i < len(ORDINALS) else ""
            self._add(Skill.POUR, target, f"pour the {self._call(bottle)} over the {target.called[0]}{often}")

    def _take(self, name: str) -> None:
        self.picked = tuple(n for n in self.picked if n != name)
        if self.held == name:
            return
        if self.held:
            raise RulesError(f"the hand holds {self.held} when {name} is due: say where {self.held} is put down")
        self._add(Skill.MOVE, self._target(name), f"pick up the {self._call(name)}")
        self.held = name
        self.at.pop(name, None)

    def _open(self, name: str) -> None:
        if name in self.open:
            return
        target = self._target(name)
        for unseen in [joint for joint in target.candidates if joint not in self.seen]:
            self._open(unseen)
            self._close(unseen)
        again = " again" if name in self.seen else ""
        self._add(Skill.OPEN, target, f"open the {target.called[0]}{again}")
        self.open.append(name)
        self.seen.add(name)

    def _close(self, name: str) -> None:
        if name in self.open:
            self.open.remove(name)
            self._add(Skill.CLOSE, self._target(name), f"close the {self._call(name)}")
        elif name not in self.seen:
            raise RulesError(f"{name} is closed already when it is to be closed")

    def _beside(self, event: Event) -> str:
        if event.beside not in self.at:
            raise RulesError(f"{event.things[0]} beside {event.beside}: nothing says where that was put")
        return self.at[event.beside]

    def _add(self, skill: Skill, target: Target, words: str) -> None:
        self.steps.append(Step(len(self.steps) + 1, words, skill, target.name))

    def _target(self, name: str) -> Target:
        target = self.vocabulary.find(name)
        assert target, name
        return target

    def _call(self, name: str) -> str:
        return self._target(name).called[0]


def _in(place: Target) -> str:
    return "into" if Role.JOINT in place.roles else "onto" if place.name == "table" else "in"


def _check_all_used(clauses: list[Clause], steps: tuple[Step, ...], vocabulary: Vocabulary) -> None:
    """Raises RulesError if the instruction names something that no step has to do with."""
    used = {step.target for step in steps}
    for step in steps:
        target = vocabulary.find(step.target)
        assert target
        used |= {*target.candidates, *vocabulary.doors(target)}
    for clause in clauses:
        described = [] if clause.copula and not clause.verbs else clause.places
        landmarks = [clause.landmark] if clause.landmark else []
        for mention in (*clause.objects, *described, *landmarks):
            if mention.names and not mention.names & used:
                raise RulesError(f"it names {mention.text!r}, and what to do with that is not clear")

"""From clauses to steps: finds the things that are meant, and adds the steps that go without saying.

An object is picked up before it is placed or poured, and a drawer or the door is opened before something is put behind
it. What "it" and "the same basket" stand for follows from the clauses before; where they could stand for several
things, the instruction is refused.
"""

from __future__ import annotations

from collections.abc import Iterable

from datagen.decompose.sentences import Clause, RulesError, Thing, things
from datagen.decompose.steps import Step
from datagen.decompose.vocabulary import Role, Target, Vocabulary
from predimem.envs.arena.subtasks import Skill

ORDINALS = ("first", "second", "third")
COUNTS = {"twice": 2, "two times": 2, "2 times": 2, "three times": 3, "3 times": 3}


class Composer:
    """Plays clauses, one after the other, on what is held, what stands open and where things were put."""

    def __init__(self, vocabulary: Vocabulary):
        self.vocabulary = vocabulary
        self.steps: list[Step] = []
        self.held = ""
        self.picked = ""  # to be picked up, but only when it is needed: drawers are opened with an empty gripper
        self.open: list[str] = []
        self.opened: set[str] = set()
        self.at: dict[str, str] = {}  # object -> the place that it was put into
        self.just_put = ""  # the object that was put last, if since then nothing was done but pouring
        self.place = ""  # the place that was named last
        self.settled: set[str] = set()  # objects of which it was said where they belong, not when they are put there

    def play(self, clause: Clause) -> None:
        getattr(self, f"_{clause.form}")(clause.slots)
        if clause.form not in ("put", "too", "pour", "leave"):
            self.just_put = ""

    def finish(self) -> tuple[Step, ...]:
        if self.picked:
            self._take(self.picked)
        return tuple(self.steps)

    # ---- one method for each form of a clause

    def _put(self, slots: dict[str, str]) -> None:
        names = self._objects(slots["objects"] or slots["subjects"])
        target = self._target(self._place(slots))
        if slots["preposition"] in ("on", "onto") and Role.JOINT in target.roles:
            raise RulesError(f"things are put into the {target.called[0]}, not onto it")
        for source in things(slots["source"]):
            self._check_source(source, target)
        for door in self.vocabulary.doors(target):
            self._add_open(door)
        for name in names:
            self._put_one(name, target)
        self.settled |= set(names) if slots["subjects"] else set()

    def _put_one(self, name: str, target: Target) -> None:
        if self.at.get(name) == target.name:
            raise RulesError(f"it puts the {self._call(name)} twice into the same place")
        self._take(name)
        way = "into" if Role.JOINT in target.roles else "onto" if target.name == "table" else "in"
        self._add(Skill.PLACE, target, f"place the {self._call(name)} {way} the {target.called[0]}")
        self.held, self.at[name] = "", target.name
        self.just_put, self.place = name, target.name

    def _too(self, slots: dict[str, str]) -> None:
        """Further objects, into the place of the put before."""
        target = self._target(self.place)
        for name in self._objects(slots["objects"]):
            self._put_one(name, target)

    def _pour(self, slots: dict[str, str]) -> None:
        (bottle,) = self._objects(slots["object"])
        if slots["times"] and slots["times_after"]:
            raise RulesError("it says twice how often is poured")
        count = COUNTS.get(slots["times"] or slots["times_after"], 1)
        said = slots["receiver"]
        receiver = Thing("it", frozenset({self.just_put} - {""})) if said == "it" else things(said)[0]
        meant = {*receiver.names, *(self.at[name] for name in receiver.names if name in self.at)}
        target = self._target(self._only(receiver, meant, Role.RECEIVER))
        self.place = target.name if Role.PLACE in target.roles else ""
        self.just_put = self.just_put if said == "it" else ""
        self._take(bottle)
        for i in range(count):
            often = f", {ORDINALS[i]} time" if count > 1 else ""
            self._add(Skill.POUR, target, f"pour the {self._call(bottle)} over the {target.called[0]}{often}")

    def _pick(self, slots: dict[str, str]) -> None:
        (name,) = self._objects(slots["object"])
        if self.picked or self.held:
            raise RulesError(f"say first where the {self._call(self.held or self.picked)} is put")
        self.picked = name

    def _look(self, slots: dict[str, str]) -> None:
        for thing in things(slots["joints"]):
            name = self._one(thing, Role.JOINT)
            self._add_open(name)
            self._add_close(name)
        self.place = ""

    def _open(self, slots: dict[str, str]) -> None:
        names = [self._one(thing, Role.JOINT) for thing in things(slots["joints"] or slots["pulled"])]
        for name in names:
            self._add_open(name)
        self.place = names[0] if len(names) == 1 else ""

    def _close(self, slots: dict[str, str]) -> None:
        said = slots["joint"] or slots["pushed"] or slots["subject"]
        named = things(said)
        meant = [name for name in self.open if not named or name in named[0].names]
        if len(meant) != 1:
            raise RulesError(f"{_said(said)} is to be closed, but {' or '.join(self.open) or 'nothing'} stands open")
        self.place = meant[0]
        self._add_close(self.place)

    def _leave(self, slots: dict[str, str]) -> None:
        """No step: what stands open stays open unless it is closed."""
        for thing in things(slots["joints"]) or [Thing("it", frozenset(self.open))]:
            if not thing.names & set(self.open):
                raise RulesError(f"{thing.text!r} is to be left open, but {' or '.join(self.open) or 'nothing'} is")

    # ---- what words mean

    def _objects(self, said: str) -> list[str]:
        named, now = things(said), self.held or self.picked
        if now and (said == "it" or (len(named) == 1 and now in named[0].names)):  # "the carton" that is held
            return [now]
        if said == "it":
            raise RulesError("it is not clear what 'it' stands for: the gripper holds nothing then")
        return [self._one(thing, Role.OBJECT) for thing in named]

    def _place(self, slots: dict[str, str]) -> str:
        """The place that a put names in one of the ways of `sentences.PLACE`, or by what was put there."""
        if slots["where"] or slots["same_spot"]:
            name = self._place_of(slots["where"] or slots["spot_of"])
            if slots["same_spot"] == "same side" and not self._around(self._target(name)):
                raise RulesError(f"the {self._call(name)} has no sides")
            return name
        if slots["beside"]:
            return self._beside(self._place_of(slots["beside"]))
        if slots["inside_it"]:
            return self._inside()
        if slots["it"] or slots["there"]:
            if not self.place:
                raise RulesError(f"it is not clear which place {slots['it'] or slots['there']!r} stands for")
            return self.place
        if slots["same"]:
            used = [self._place_of(slots["same_as"])] if slots["same_as"] else self.at.values()
            return self._same(things(slots["same"])[0], used)
        (thing,) = things(slots["place"] or slots["mark"])
        standing = thing.names & set(self.open)  # "the drawer", where one stands open
        name = self._only(thing, standing if len(standing) == 1 else thing.names, Role.PLACE)
        container = "it" if slots["within"] or slots["inside"] == "there" else slots["inside"] or slots["container"]
        if container and not self._is_in(self._target(name), container):
            raise RulesError(f"the {thing.text} is not known to be in {_said(container)}")
        return name

    def _is_in(self, target: Target, container: str) -> bool:
        """Whether a container, of which the target may be a part or one of which it may be, is that of the target."""
        outer = {self.place} if container == "it" else things(container)[0].names
        around = set() if Role.JOINT in target.roles else set(self.vocabulary.doors(target))
        around = around or set(target.candidates)
        return bool(around) and around <= outer

    def _check_source(self, thing: Thing, target: Target) -> None:
        """Raises RulesError if "from" says more than is clear anyway: a reference, or a drawer to be opened."""
        doors = {door for name in thing.names for door in self.vocabulary.doors(self._target(name))}
        if not set(target.candidates) <= thing.names or not doors <= set(self.open):
            raise RulesError(f"it is not known what lies in or on the {thing.text}")

    def _place_of(self, said: str) -> str:
        """Where a clause before has put an object, or the last one if a pronoun or nothing names it."""
        if not things(said):
            if not self.just_put:
                raise RulesError(f"it is not clear what {said or 'the same place'!r} stands for")
            return self.at[self.just_put]
        thing = things(said)[0]
        name = self._one(thing, Role.OBJECT)
        if name not in self.at:
            raise RulesError(f"nothing before says where the {thing.text} is")
        return self.at[name]

    def _beside(self, name: str) -> str:
        """The place for one more beside what is in a place: the drawer around a half that has room for one alone."""
        target = self._target(name)
        around = self._around(target)
        if not around:
            return name
        if target.room == 1:
            return around
        raise RulesError(
            f"beside what is in the {target.called[0]} may be in it or in the other half: say where it is to be put"
        )

    def _inside(self) -> str:
        """What is meant by "in" alone: the drawer or the microwave, the basket, the pan."""
        if not self.place or self.place == "table":
            raise RulesError("it is not clear what things are put in")
        return self._around(self._target(self.place)) or self.place

    def _around(self, target: Target) -> str:
        """The joint behind which a place is a part; "" if it is none."""
        doors = () if Role.JOINT in target.roles else self.vocabulary.doors(target)
        return doors[0] if len(doors) == 1 else ""

    def _same(self, thing: Thing, used: Iterable[str]) -> str:
        """Of the places that were used, or the joints in front of them, the one that is called like this."""
        found = set()
        for name in used:
            target = self._target(name)
            itself = name in thing.names or thing.names & set(target.candidates)
            found |= {name} if itself else thing.names & set(self.vocabulary.doors(target))
        return self._only(thing, found, Role.PLACE)

    def _one(self, thing: Thing, role: Role) -> str:
        return self._only(thing, thing.names, role)

    def _only(self, thing: Thing, meant: Iterable[str], role: Role) -> str:
        """The one target with this role among those that may be meant."""
        found = sorted(name for name in meant if role in self._target(name).roles)
        if len(found) != 1:
            raise RulesError(
                f"{thing.text!r} as {role} may be {' or '.join(found) or 'nothing'}: say which one is meant"
            )
        return found[0]

    # ---- steps

    def _take(self, name: str) -> None:
        if self.held == name:
            return
        if (other := self.held or self.picked) not in ("", name):
            raise RulesError(f"the gripper holds the {self._call(other)} when {name} is due: say where that is put")
        if name in self.settled:
            raise RulesError(
                f"it says where the {self._call(name)} goes, and then it is moved again: say in which order"
            )
        self._add(Skill.MOVE, self._target(name), f"pick up the {self._call(name)}")
        self.held, self.picked = name, ""
        self.at.pop(name, None)

    def _add_open(self, name: str) -> None:
        if name in self.open:
            return
        again = " again" if name in self.opened else ""
        self._add(Skill.OPEN, self._target(name), f"open the {self._call(name)}{again}")
        self.open.append(name)
        self.opened.add(name)

    def _add_close(self, name: str) -> None:
        self.open.remove(name)
        self._add(Skill.CLOSE, self._target(name), f"close the {self._call(name)}")

    def _add(self, skill: Skill, target: Target, words: str) -> None:
        self.steps.append(Step(len(self.steps) + 1, words, skill, target.name))

    def _target(self, name: str) -> Target:
        target = self.vocabulary.find(name)
        assert target, name
        return target

    def _call(self, name: str) -> str:
        return self._target(name).called[0]


def _said(slot: str) -> str:
    return repr(things(slot)[0].text) if slot and slot != "it" else "'it'"

"""From clauses to events: what "it", "there", "the same drawer" and "the carton" stand for."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from datagen.decompose.clauses import DOOR_VERBS, Clause, Mention
from datagen.decompose.events import Event
from datagen.decompose.lexer import RulesError
from datagen.decompose.order import in_order
from datagen.decompose.vocabulary import Role, Target, Vocabulary


@dataclass
class _Focus:
    """What was spoken of last, latest first."""

    objects: list[str] = field(default_factory=list)
    group: tuple[str, ...] = ()  # the objects of the last clause that had any
    bottle: str = ""
    exact: str = ""  # the last place
    places: list[str] = field(default_factory=list)

    def saw(self, name: str) -> None:
        self.objects = [name, *(n for n in self.objects if n != name)]

    def went(self, name: str) -> None:
        self.exact = name
        self.places = [name, *(n for n in self.places if n != name)]


def read_events(clauses: list[Clause], vocabulary: Vocabulary) -> list[Event]:
    """The events of an instruction in the order in which they are to happen.

    Raises RulesError where something is missing, or may mean several things.
    """
    return _Interpreter(clauses, vocabulary).run()


class _Interpreter:
    def __init__(self, clauses: list[Clause], vocabulary: Vocabulary):
        self.clauses = clauses
        self.vocabulary = vocabulary
        self.focus = _Focus()
        self.events: list[Event] = []
        self.at = 0

    def run(self) -> list[Event]:
        for index, clause in enumerate(self.clauses):
            self.at = index
            self._clause(clause)
        rank = {clause: position for position, clause in enumerate(in_order(self.clauses))}
        return sorted(self._merged(), key=lambda event: rank[event.clause])

    def _add(self, event: Event) -> None:
        self.events.append(replace(event, clause=self.at))

    def _clause(self, clause: Clause) -> None:
        verb = clause.verbs[0] if clause.verbs else self._unsaid(clause)
        verb = {"pull": "open", "push": "close"}.get(verb, verb)
        if verb == "put" and clause.count and any(self._pours(mention) for mention in clause.objects):
            verb = "pour"
        if verb == "leave open":
            raise self._error(clause, "not leave it how?")
        if clause.count and verb not in ("pour", "redo"):
            raise self._error(clause, "what is to be done how often?")
        if clause.first and not clause.front and any(e for e in self.events if self._sentence(e) != clause.sentence):
            raise self._error(clause, "first, after other things? Say 'before that', or name things in their order")
        if verb in DOOR_VERBS:
            self._door(clause, verb)
        elif verb == "pour":
            self._pour(clause)
        elif verb in ("put", "repeat") or (verb == "pick" and (clause.places or clause.landmark)):
            self._put(clause, repeat=verb == "repeat")
        elif verb == "redo":
            self._redo(clause)
        elif verb == "pick":
            self._pick(clause)
        else:
            self._describe(clause)

    def _pours(self, mention: Mention) -> bool:
        return any(self._is(name, Role.BOTTLE) for name in mention.names)

    def _sentence(self, event: Event) -> int:
        return self.clauses[event.clause].sentence

    def _unsaid(self, clause: Clause) -> str:
        """The verb of a clause without one; "" where it only describes."""
        if clause.again and not clause.objects and not clause.places:
            return "redo"
        if clause.count and clause.objects:
            return "pour"
        if clause.objects and (clause.modal or not clause.copula):
            return "put"
        put = {name for event in self.events if event.verb == "put" for name in event.things}
        if clause.link and clause.places and any(m.names and not m.names & put for m in clause.objects):
            return "put"  # "once the butter is in the pan", and nothing said so before
        return ""

    def _describe(self, clause: Clause) -> None:
        if clause.places and not (clause.copula or clause.link):
            raise self._error(clause, "what is to be done there?")
        for mention in (*clause.objects, *clause.places):
            if len(mention.names) == 1 and not mention.plural:
                (name,) = mention.names
                target = self._target(name)
                (self.focus.saw if Role.OBJECT in target.roles else self.focus.went)(name)

    # ---- verbs

    def _pick(self, clause: Clause) -> None:
        things = self._objects(clause)
        if not things:
            raise self._error(clause, "pick up what?")
        self._add(Event("pick", things))

    def _put(self, clause: Clause, repeat: bool) -> None:
        pointed = all(mention.pronoun for mention in (*clause.objects, *clause.places))
        if clause.link and pointed and not clause.landmark:
            return  # "after putting it there": said before
        exact, things = self.focus.exact, self._objects(clause)
        if not things:
            if clause.link:
                return  # "after filling it"
            raise self._error(clause, "put what?")
        self.focus.exact = exact
        if clause.landmark:
            self._put_beside(clause, things)
            return
        if clause.places and not repeat:
            self._check_led(clause.places[0], clause)
        places = [self._place(mention, clause) for mention in clause.places]
        if not places and repeat and self.focus.exact:
            places = [self.focus.exact]
        if not places:
            places = [self._unsaid_place(clause, things)]
        if len(places) == 1:
            places *= len(things)
        if len(places) != len(things):
            raise self._error(clause, f"{', '.join(things)} into {', '.join(places)}: which goes where?")
        closes = repeat and any(event.verb == "close" for event in self.events)
        for thing, place in zip(things, places, strict=True):
            self._add(Event("put", (thing,), place))
            self.focus.went(place)
            if closes:
                self._add(Event("close", (self._door_of(place, clause),)))

    def _check_led(self, place: Mention, clause: Clause) -> None:
        """A place needs a preposition, unless it heads a clause without a verb ("top drawer: cookies")."""
        heads = not clause.verbs and clause.words.index(place.text) < clause.words.index(clause.objects[0].text)
        if not (place.preposition or place.pronoun or place.same or heads):
            raise self._error(clause, f"what about {place.text!r}?")

    def _put_beside(self, clause: Clause, things: tuple[str, ...]) -> None:
        assert clause.landmark
        others = [name for name in self.focus.objects if name not in things]
        if clause.landmark.names:
            beside = self._one(clause.landmark, others, clause)
        else:
            beside = self._pointed(clause.landmark.pronoun, others)
        if not beside or Role.OBJECT not in self._target(beside).roles:
            raise self._error(clause, "beside what?")
        for thing in things:
            self._add(Event("put", (thing,), beside=beside))

    def _unsaid_place(self, clause: Clause, things: tuple[str, ...]) -> str:
        if clause.back and self.vocabulary.find("table"):
            return "table"  # where things come from
        last = self.focus.exact
        added = any(word.startswith(("add", "join", "belong")) for word in clause.words)
        if last and not clause.verbs:
            return last
        if last and (clause.inward or added):
            return self._whole(last)
        raise self._error(clause, f"put {', '.join(things)} where?")

    def _pour(self, clause: Clause) -> None:
        pointed = all(mention.pronoun for mention in (*clause.objects, *clause.places))
        if clause.link and self.events and pointed and not (clause.count or clause.again):
            return  # "after filling it"
        before = list(self.focus.objects)
        over = [m for m in clause.objects if m.preposition in ("over", "on", "in")]
        bottle = receiver = ""
        for mention in clause.objects:
            if mention.pronoun and any(self._pours(other) for other in clause.objects):
                receiver = self._pointed(mention.pronoun, [n for n in before if not self._is(n, Role.BOTTLE)])
                continue  # "give it some sauce"
            if mention.pronoun:
                bottle = bottle or self._pointed("it", [n for n in before if self._is(n, Role.BOTTLE)])
                continue
            name = self._one(mention, before, clause)
            if self._is(name, Role.BOTTLE) and not bottle and (mention not in over or len(clause.objects) == 1):
                bottle = name
            elif not receiver:
                receiver = name
            else:
                raise self._error(clause, f"pour {name}?")
            self.focus.saw(name)
        for mention in clause.places:
            receiver = receiver or self._receiver(mention, before, clause)
        previous = next((e for e in reversed(self.events) if e.verb == "pour"), None)
        if previous and (not receiver or receiver == previous.where) and (not bottle or bottle == previous.things[0]):
            if clause.again:
                previous.count += max(clause.count, 1)
                return
            if not receiver and clause.count:
                previous.count = clause.count  # "pouring two times"
                return
        bottle = bottle or self.focus.bottle or next((n for n in before if self._is(n, Role.BOTTLE)), "")
        if not bottle or not receiver:
            missing = "pour what?" if not bottle else "pour into or over what?"
            raise self._error(clause, missing)
        self.focus.bottle = bottle
        self.focus.saw(bottle)
        self.focus.group = (bottle,)
        count = max(clause.count, 1) + clause.again
        self._add(Event("pour", (bottle,), receiver, count=count))

    def _receiver(self, mention: Mention, before: list[str], clause: Clause) -> str:
        if mention.names:
            return self._one(mention, self.focus.places, clause)
        objects = [name for name in before if not self._is(name, Role.BOTTLE)]
        place = self.focus.exact if self.focus.exact and self._is(self.focus.exact, Role.RECEIVER) else ""
        if mention.preposition == "in" or not objects:
            return place or self._pointed(mention.pronoun, objects)
        return self._pointed(mention.pronoun, objects)

    def _redo(self, clause: Clause) -> None:
        pours = [event for event in self.events if event.verb == "pour"]
        if not pours or self.events[-1] is not pours[-1]:
            raise self._error(clause, "do what once more?")
        pours[-1].count = (
            clause.count if clause.count > 1 and not clause.again else pours[-1].count + max(clause.count, 1)
        )

    def _door(self, clause: Clause, verb: str) -> None:
        if verb == "look" and any(m.names and not any(self._doors(n) for n in m.names) for m in clause.places):
            clause.copula = True  # "look for the basket with the mat"
            self._describe(clause)
            return
        joints = self._all_joints(clause, verb)
        verbs = [{"pull": "open", "push": "close"}.get(v, v) for v in clause.verbs]
        if not joints and verb == "close" and not clause.each and not self._after_look():
            joints = [self._door_of(self.focus.exact, clause)]
        if verb == "look" and clause.direction == "up":
            joints.reverse()
        if "look" in verbs or {"open", "close"} <= set(verbs):
            verb = "look"
        several = verb == "look" or len(clause.verbs) > 1 or (verb == "open" and bool(clause.each))
        if several and not joints and not self._after_look():
            joints = [name for name in self.vocabulary.names(Role.JOINT) if not self._target(name).candidates]
            joints = [name for name in joints if "drawer" in self._target(name).called] or joints
        if len(joints) == 1:
            self.focus.went(joints[0])
        for mention in clause.places:
            if len(mention.names) == 1:
                self.focus.went(*mention.names)  # "find the drawer that is empty": looks into all of them
        if clause.verbs == ["look"] and self._after_look() and set(joints) <= set(self.events[-1].things):
            return  # "to find the empty one": by what was said before
        self._add(Event(verb, tuple(joints), how=clause.direction or clause.each))

    def _all_joints(self, clause: Clause, verb: str) -> list[str]:
        named: list[str] = []
        several: list[str] = []
        for mention in clause.places:
            if mention.names or not clause.each:  # "open each and close it": each
                joints = self._joints(mention, clause, verb)
                if len(joints) > 1:
                    several += joints
                else:
                    named += joints
        if named and several and set(named) != set(several):
            raise self._error(clause, "which of them, and in which order?")
        return list(dict.fromkeys(named or several))

    def _after_look(self) -> bool:
        """Whether what came last was looking into, or opening, several joints."""
        last = self.events[-1] if self.events else None
        return bool(last and (last.verb == "look" or (last.verb in DOOR_VERBS and len(last.things) != 1)))

    # ---- what is meant

    def _joints(self, mention: Mention, clause: Clause, verb: str) -> list[str]:
        several = mention.plural or bool(clause.each)
        joints = [name for name in self.vocabulary.names(Role.JOINT) if name in mention.names]
        if verb == "look" or (several and len(joints) > 1):
            found = []
            for name in joints:
                found += self._target(name).candidates or (name,)
            if mention.names and not found:
                found = [self._door_of(name, clause) for name in mention.names]
            if verb == "close" and several:
                return []
            return found
        if mention.pronoun in ("it", "there", "one", "exact", "them") and not mention.names:
            return [] if self._after_look() else [self._door_of(self.focus.exact, clause)]
        if len(mention.names) > 1 or mention.same:
            doors = [door for place in self.focus.places for door in self._doors(place)]
            named = [
                door for door in doors if door in mention.names or set(self._target(door).candidates) & mention.names
            ]
            if named:
                return named[:1]
        return [self._door_of(self._one(mention, [], clause), clause)]

    def _place(self, mention: Mention, clause: Clause) -> str:
        last = self.focus.exact
        if mention.pronoun:
            if not last:
                raise self._error(clause, f"what does {mention.text!r} mean?")
            return last if mention.pronoun == "exact" or mention.preposition in ("on", "over") else self._whole(last)
        if mention.same or len(mention.names) > 1:
            for place in self.focus.places:
                for name in (place, self._whole(place)):
                    if name in mention.names or set(self._target(name).candidates) & mention.names:
                        return name
        return self._one(mention, [], clause)

    def _objects(self, clause: Clause) -> tuple[str, ...]:
        """What a clause acts on."""
        before, found = list(self.focus.objects), []
        for mention in clause.objects:
            if mention.names:
                found.append(self._one(mention, before, clause))
            elif mention.pronoun == "them" and len(self.focus.group) > 1:
                found += self.focus.group
            elif name := self._pointed(mention.pronoun, [*self.focus.group, *before]):
                if not found:
                    found.append(name)
            else:
                raise self._error(clause, f"what does {mention.text!r} mean?")
        if clause.objects and found:
            for name in reversed(found):
                self.focus.saw(name)
            self.focus.group = tuple(dict.fromkeys(found))
        return tuple(dict.fromkeys(found))

    def _pointed(self, pronoun: str, names: Iterable[str]) -> str:
        """ "them" is cookies rather than butter, "it" the other way round."""
        names = list(names)
        fitting = [name for name in names if _several(self._target(name)) == (pronoun == "them")]
        return next(iter([*fitting, *names]), "")

    def _one(self, mention: Mention, recent: list[str], clause: Clause) -> str:
        if len(mention.names) == 1:
            return next(iter(mention.names))
        for name in recent:
            if name in mention.names:
                return name
        which = f"may be any of {', '.join(sorted(mention.names))}" if mention.names else "is not just one place here"
        raise self._error(clause, f"{mention.text!r} {which}")

    def _target(self, name: str) -> Target:
        target = self.vocabulary.find(name)
        assert target, name
        return target

    def _is(self, name: str, role: Role) -> bool:
        return role in self._target(name).roles

    def _doors(self, place: str) -> tuple[str, ...]:
        return self.vocabulary.doors(self._target(place))

    def _whole(self, place: str) -> str:
        """What a place is a part of, or the place itself."""
        doors = self._doors(place)
        return doors[0] if len(doors) == 1 and self._is(doors[0], Role.PLACE) else place

    def _door_of(self, place: str, clause: Clause) -> str:
        doors = self._doors(place) if place else ()
        if len(doors) != 1:
            raise self._error(clause, f"open or close what? {place or 'nothing'} has no door of its own")
        return doors[0]

    def _error(self, clause: Clause, question: str) -> RulesError:
        understood = "; ".join(event.said() for event in self.events) or "nothing yet"
        return RulesError(f"{question} (in {' '.join(clause.words)!r}; understood before that: {understood})")

    # ---- looking into several joints is one event, however it is said

    def _merged(self) -> list[Event]:
        merged: list[Event] = []
        for event in self.events:
            last = merged[-1] if merged else None
            looks = last and last.verb in ("look", "open") and (last.verb == "look" or len(last.things) != 1)
            if last and looks and event.verb in DOOR_VERBS and (not event.things or not last.things):
                last.things = last.things or event.things
                if event.how == "up":
                    last.things = tuple(reversed(last.things))
                last.verb = "look" if event.verb != "open" else last.verb
            elif event.verb == "close" and not event.things:
                merged = _close_each(merged, event, self)
            else:
                merged.append(event)
        for event in merged:
            if event.verb in DOOR_VERBS and not event.things:
                raise self._error(self.clauses[event.clause], f"{event.verb} what?")
        return merged


def _close_each(events: list[Event], close: Event, interpreter: _Interpreter) -> list[Event]:
    """A "closing each" after several puts: every joint is closed after the last thing that is put behind it.

    "Close both": at the end.
    """
    doors = {i: interpreter._doors(e.where)[:1] for i, e in enumerate(events) if e.verb == "put" and e.where}
    result: list[Event] = []
    for i, event in enumerate(events):
        result.append(event)
        if doors.get(i) and doors[i] not in [doors[j] for j in doors if j > i]:
            result.append(Event("close", doors[i], clause=event.clause))
    if close.how == "all":
        result.sort(key=lambda event: event.verb == "close" and event not in events)
    if len(result) == len(events):
        raise interpreter._error(interpreter.clauses[close.clause], "close what?")
    return result


def _several(target: Target) -> bool:
    return target.called[0].endswith("s")

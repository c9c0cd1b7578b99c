"""The vocabulary of a scene: the objects, places and joints that steps may name, and how people call them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from datagen.decompose.references import REFERENCES, resolve
from datagen.decompose.words import CALLED, FORMS
from predimem.envs.arena.fixtures import DOOR, DRAWERS, JOINTS, PLACES, POUR_RADIUS_M
from predimem.envs.arena.objects import OBJECTS
from predimem.envs.arena.subtasks import Skill
from predimem.envs.arena.task import Task


class Role(StrEnum):
    """What can be done with a target."""

    OBJECT = "object"  # picked and placed
    BOTTLE = "bottle"  # an object that pours
    PLACE = "place"  # an object is placed in or on it
    RECEIVER = "receiver"  # poured into or over
    JOINT = "joint"  # opened and closed; closed at first


ROLE_OF = {
    Skill.MOVE: Role.OBJECT,
    Skill.PLACE: Role.PLACE,
    Skill.POUR: Role.RECEIVER,
    Skill.OPEN: Role.JOINT,
    Skill.CLOSE: Role.JOINT,
}


@dataclass(frozen=True)
class Target:
    """Something that a step may name.

    called: the names that people use for it, in lower case; the usual one is first. Two targets may share a name
        ("mug"), which then does not tell which one is meant.
    behind: the joint that has to be open before something can be put into this place; "" if there is none.
    candidates: the targets that this one may turn out to be, if it is a reference (`references`); empty otherwise.
    note: what a reader needs to know besides the names.
    room: how many objects fit into this place; None where it is no place or no limit is known.
    """

    name: str
    roles: frozenset[Role]
    called: tuple[str, ...]
    behind: str = ""
    candidates: tuple[str, ...] = ()
    note: str = ""
    room: int | None = None


@dataclass(frozen=True)
class Vocabulary:
    """All targets of one scene. Raises ValueError if they do not fit together."""

    targets: tuple[Target, ...]

    def __post_init__(self) -> None:
        names = [target.name for target in self.targets]
        if len(set(names)) != len(names):
            raise ValueError(f"the targets of a vocabulary have different names; got {', '.join(sorted(names))}")
        joints = {t.name for t in self.targets if Role.JOINT in t.roles}
        for target in self.targets:
            if not target.roles or not target.called or any(not name.strip() for name in target.called):
                raise ValueError(f"target {target.name!r} needs at least one role and one name that people call it by")
            if target.behind and target.behind not in joints:
                raise ValueError(f"target {target.name!r} is behind {target.behind!r}, which is no joint of the scene")
            unknown = set(target.candidates) - set(names)
            if unknown:
                raise ValueError(f"reference {target.name!r} may be {sorted(unknown)}, which the scene does not have")

    def find(self, name: str) -> Target | None:
        return next((target for target in self.targets if target.name == name), None)

    def names(self, role: Role) -> tuple[str, ...]:
        return tuple(target.name for target in self.targets if role in target.roles)

    def doors(self, target: Target) -> tuple[str, ...]:
        """The joints that may have to be open before something can be put there."""
        if Role.JOINT in target.roles:
            return (target.name,)
        if target.candidates:
            found = (self.find(name) for name in target.candidates)
            return tuple(dict.fromkeys(door for t in found if t for door in self.doors(t)))
        return (target.behind,) if target.behind else ()

    def parts(self, joint: Target) -> tuple[Target, ...]:
        """The halves behind a joint, those that references may mean included."""
        return tuple(t for t in self.targets if Role.JOINT not in t.roles and self.doors(t) == (joint.name,))


def vocabulary_of(task: Task) -> Vocabulary:
    """The vocabulary of a task of the arena. It does not depend on the variant."""
    objects = {name: {Role.OBJECT} | ({Role.BOTTLE} if OBJECTS[name].pourable else set()) for name in task.objects}
    marked = {PLACES[place].frame for variant in task.variants for place in variant.mats}
    places: dict[str, set[Role]] = {}
    for name, place in PLACES.items():
        whole = name in ("table", *task.fixtures, *JOINTS)
        if whole or (place.frame in marked and place.frame in JOINTS):  # halves only where one is marked
            places[name] = {Role.PLACE} | ({Role.JOINT} if name in JOINTS else set())
    mugs = {name: set() for name in task.fixtures if name not in places}
    roles: dict[str, set[Role]] = objects | places | mugs
    for name in set(POUR_RADIUS_M) & set(roles):
        roles[name].add(Role.RECEIVER)
    targets = [_target(name, frozenset(found)) for name, found in roles.items() if found]
    return Vocabulary((*targets, *_references(task, targets)))


def _target(name: str, roles: frozenset[Role]) -> Target:
    plain = name.replace("_", " ")
    called = CALLED.get(name, (plain,))
    if name in OBJECTS:
        forms = FORMS[OBJECTS[name].form]
        called += (*forms, *(text for form in forms for n in called for text in (f"{n} {form}", f"{form} of {n}")))
    frame = PLACES[name].frame if name in PLACES else ""
    behind = frame if name != frame and frame in (*DRAWERS, DOOR) else ""
    room = len(PLACES[name].slots_m) if Role.PLACE in roles and name != "table" else None
    return Target(name, roles, called, behind, room=room)


def _references(task: Task, targets: Iterable[Target]) -> list[Target]:
    """The references that mean exactly one place in every variant of the task."""
    found = []
    known = {target.name: target for target in targets}
    for reference in REFERENCES:
        answers = [resolve(reference.name, variant) for variant in task.variants]
        if not all(answer in known for answer in answers):
            continue
        candidates = [known[name] for name in reference.candidates if name in known]
        behind = {known[str(answer)].behind for answer in answers}  # of all halves, those of the marked furniture
        candidates = [c for c in candidates if c.behind in behind]
        roles = frozenset.intersection(*(c.roles for c in candidates))
        names = tuple(c.name for c in candidates)
        room = min((c.room for c in candidates if c.room is not None), default=None)
        found.append(Target(reference.name, roles, reference.called, "", names, reference.note, room))
    return found

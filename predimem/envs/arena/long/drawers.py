"""Modules of the cabinet: what its drawers hold is hidden as soon as they are shut."""

from __future__ import annotations

from collections.abc import Mapping

from predimem.envs.arena.long.module import Module, Part
from predimem.envs.arena.long.words import (
    CONTAINERS,
    INTO,
    container_label,
    drawer_label,
    pick_label,
    spoken,
    which_drawer,
)
from predimem.envs.arena.subtasks import Memory, Subtask, close_joint, open_joint, pick, place
from predimem.envs.arena.visits import PULLED_M, SHUT_M, Carry, Slide


def search(object: str, occupants: tuple[str, ...], order: tuple[str, ...], wanted: str, empty: bool) -> Module:
    """Look into drawers; later an object goes into `wanted`: the only one that is empty, or that is not.

    order: the drawers to look into, two or three. Occupants that are not needed stay on the table.
    """
    others = [drawer for drawer in order if drawer != wanted]
    start = dict(zip(occupants, others, strict=False)) if empty else {occupants[0]: wanted}
    looks: list[Subtask] = []
    for index, drawer in enumerate(order):
        memory: Memory | None = "occlusion" if index else None
        looks += [
            open_joint(f"open {which_drawer(drawer)} drawer", drawer, memory),
            close_joint(f"close {which_drawer(drawer)} drawer", drawer, memory),
        ]
    *first, last = (f"the {which_drawer(drawer)}" for drawer in order)
    sought = "was empty" if empty else "was not empty"
    return Module(
        remember=("which drawers were looked into", f"which of them {sought}"),
        before=Part(
            f"Open and close {', '.join(first)} and {last} drawer in this order to see what is inside.",
            tuple(looks),
        ),
        after=Part(
            f"Put the {spoken(object)} into the drawer that {sought} and close it.",
            _put_in(object, wanted, again=True),
        ),
        start=start,
    )


def hide(thing: str, object: str, drawer: str, start: Mapping[str, str] | None = None) -> Module:
    """Somebody puts a thing into a drawer; later an object goes into the same one. start: see `Module`."""
    return Module(
        remember=(f"which drawer somebody put the {spoken(thing)} into",),
        acts=(Slide(drawer, PULLED_M), Carry(thing, drawer), Slide(drawer, SHUT_M)),
        told=f"puts the {spoken(thing)} into one of the drawers",
        after=Part(
            f"Put the {spoken(object)} into the drawer that the {spoken(thing)} was put into and close it.",
            _put_in(object, drawer),
        ),
        start=start or {},
    )


def look(drawer: str, decoy: str, occupant: str, occupied: bool, object: str, kind: str) -> Module:
    """Look into one drawer; later an object goes into the left container if something was in it, and else to the right.

    decoy: where the occupant is if not in the drawer; kind: of container.
    """
    which, container = which_drawer(drawer), CONTAINERS[kind]
    side = "left" if occupied else "right"
    return Module(
        remember=(f"whether the {which} drawer held something",),
        before=Part(
            f"Open and close the {which} drawer to see whether something is inside.",
            (open_joint(f"open {which} drawer", drawer), close_joint(f"close {which} drawer", drawer)),
        ),
        after=Part(
            f"If something was in the {which} drawer, put the {spoken(object)} {INTO[kind]} the left {container}, "
            f"otherwise {INTO[kind]} the right {container}.",
            (
                pick(pick_label(object), object),
                place(container_label(object, kind, side), object, f"{kind}_{side}", "occlusion"),
            ),
        ),
        start={occupant: drawer if occupied else decoy},
    )


def put_by_answer(object: str, if_yes: str, if_no: str, question: str, yes: bool) -> Part:
    """An object goes into one drawer or another, by what was seen before."""
    return Part(
        f"{question}, put the {spoken(object)} into the {which_drawer(if_yes)} drawer, otherwise into the "
        f"{which_drawer(if_no)} drawer, and close that drawer.",
        _put_in(object, if_yes if yes else if_no),
    )


def _put_in(object: str, drawer: str, again: bool = False) -> tuple[Subtask, ...]:
    which = which_drawer(drawer)
    opened, closed = ("again", "final") if again else ("", "")
    return (
        open_joint(f"open {which} drawer {opened}".strip(), drawer, "occlusion"),
        pick(pick_label(object), object),
        place(drawer_label(object, drawer), object, drawer, "occlusion"),
        close_joint(f"close {which} drawer {closed}".strip(), drawer, "occlusion"),
    )

"""Modules of twin containers (baskets, plates, shelf cabinets): nothing on them tells where a thing was before."""

from __future__ import annotations

from predimem.envs.arena.long.module import SIDES, Module, Part
from predimem.envs.arena.long.words import (
    CONTAINERS,
    IN,
    INTO,
    OUT_OF,
    container_label,
    pick_label,
    spoken,
)
from predimem.envs.arena.subtasks import pick, place
from predimem.envs.arena.visits import Carry


def put_back(object: str, kind: str, side: str) -> Module:
    """Somebody takes an object out of its container to the table; later it goes back into that one of the two."""
    container, name = CONTAINERS[kind], spoken(object)
    return Module(
        remember=(f"which {container} the {name} was {IN[kind]}",),
        start={object: f"{kind}_{side}"},
        acts=(Carry(object, "table"),),
        told=f"takes the {name} {OUT_OF[kind]} its {container}",
        after=Part(
            f"Put the {name} back {INTO[kind]} the {container} that it was {IN[kind]} at the beginning.",
            (
                pick(pick_label(object), object),
                place(container_label(object, kind, side), object, f"{kind}_{side}", "transferring"),
            ),
        ),
    )


def transfer(objects: tuple[str, ...], kind: str, source: str) -> Module:
    """Objects go from the container that they are in to its twin, one after the other."""
    container, target = CONTAINERS[kind], _twin(source)
    verb = "is" if len(objects) == 1 else "are"
    it = "it" if len(objects) == 1 else "they"
    named = ", then the ".join(map(spoken, objects))
    subtasks = [
        subtask
        for object in objects
        for subtask in (
            pick(pick_label(object), object),
            place(container_label(object, kind, target), object, f"{kind}_{target}", "transferring"),
        )
    ]
    return Module(
        remember=(f"which {container} the {' and the '.join(map(spoken, objects))} came from",),
        start={object: f"{kind}_{source}" for object in objects},
        free=Part(
            f"Move the {named} from the {container} that {it} {verb} {IN[kind]} to the other one.", tuple(subtasks)
        ),
    )


def there_and_back(object: str, kind: str, source: str) -> Module:
    """An object goes to the twin of its container, and after the pause back to where it was."""
    container, target, name = CONTAINERS[kind], _twin(source), spoken(object)
    return Module(
        remember=(f"which {container} the {name} was {IN[kind]} at first", f"whether the {name} was moved already"),
        start={object: f"{kind}_{source}"},
        before=Part(
            f"Move the {name} from the {container} that it is {IN[kind]} to the other one.",
            (
                pick(pick_label(object), object),
                place(container_label(object, kind, target), object, f"{kind}_{target}", "transferring"),
            ),
        ),
        after=Part(
            f"Move the {name} back to the {container} that it was {IN[kind]} at the beginning.",
            (
                pick(pick_label(object, 2), object, "transferring"),
                place(container_label(object, kind, source), object, f"{kind}_{source}", "transferring"),
            ),
        ),
    )


def _twin(side: str) -> str:
    return SIDES[1 - SIDES.index(side)]

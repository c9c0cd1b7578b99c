"""Task 19: the tomato sauce, the milk and the orange juice from one of two identical shelf cabinets to the other."""

from __future__ import annotations

from predimem.envs.arena.subtasks import pick, place
from predimem.envs.arena.task import Task, Variant


def _variant(source: str, target: str) -> Variant:
    return Variant(
        instruction=(
            "Move the tomato sauce, then the milk, then the orange juice "
            "from the shelf cabinet that they are in to the other one."
        ),
        subtasks=(
            pick("pick tomato sauce", "tomato_sauce"),
            place("place tomato sauce cabinet2", "tomato_sauce", target, memory="transferring"),
            pick("pick milk", "milk", memory="transferring"),
            place("place milk cabinet2", "milk", target, memory="transferring"),
            pick("pick orange juice", "orange_juice", memory="transferring"),
            place("place orange juice cabinet2", "orange_juice", target, memory="transferring"),
        ),
        start={"tomato_sauce": source, "milk": source, "orange_juice": source},
    )


TASK = Task(
    task_id=19,
    name="TransferSauceMilkJuice",
    title="Transfer Sauce Milk Juice",
    category="transferring",
    objects=("tomato_sauce", "milk", "orange_juice"),
    fixtures=("shelf_left", "shelf_right"),
    variants=(_variant("shelf_left", "shelf_right"), _variant("shelf_right", "shelf_left")),
    drawn="which shelf cabinet is the source",
    remember="which of two identical shelf cabinets is the source, and what was moved",
)

"""Task 26: the chocolate pudding and the cream cheese from one of two identical plates to the other."""

from __future__ import annotations

from predimem.envs.arena.subtasks import pick, place
from predimem.envs.arena.task import Task, Variant


def _variant(source: str, target: str) -> Variant:
    return Variant(
        instruction=(
            "Move the chocolate pudding, then the cream cheese from the plate that they are on to the other one."
        ),
        subtasks=(
            pick("pick chocolate pudding", "chocolate_pudding"),
            place("place chocolate pudding plate2", "chocolate_pudding", target, memory="transferring"),
            pick("pick cream cheese", "cream_cheese", memory="transferring"),
            place("place cream cheese plate2", "cream_cheese", target, memory="transferring"),
        ),
        start={"chocolate_pudding": source, "cream_cheese": source},
    )


TASK = Task(
    task_id=26,
    name="TransferChocolatePuddingCreamCheese",
    title="Transfer Chocolate Pudding Cream Cheese",
    category="transferring",
    objects=("chocolate_pudding", "cream_cheese", "popcorn"),
    fixtures=("plate_left", "plate_right"),
    variants=(_variant("plate_left", "plate_right"), _variant("plate_right", "plate_left")),
    drawn="which plate is the source",
    remember="which of two identical plates is the source, and what was moved",
)

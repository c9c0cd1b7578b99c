"""Task 25: the butter and the cream cheese from one of two identical plates to the other."""

from __future__ import annotations

from predimem.envs.arena.subtasks import pick, place
from predimem.envs.arena.task import Task, Variant


def _variant(source: str, target: str) -> Variant:
    return Variant(
        instruction="Move the butter, then the cream cheese from the plate that they are on to the other one.",
        subtasks=(
            pick("pick butter", "butter"),
            place("place butter plate2", "butter", target, memory="transferring"),
            pick("pick cream cheese", "cream_cheese", memory="transferring"),
            place("place cream cheese plate2", "cream_cheese", target, memory="transferring"),
        ),
        start={"butter": source, "cream_cheese": source},
    )


TASK = Task(
    task_id=25,
    name="TransferButterCreamCheese",
    title="Transfer Butter Cream Cheese",
    category="transferring",
    objects=("butter", "cream_cheese", "cookies"),
    fixtures=("plate_left", "plate_right"),
    variants=(_variant("plate_left", "plate_right"), _variant("plate_right", "plate_left")),
    drawn="which plate is the source",
    remember="which of two identical plates is the source, and what was moved",
)

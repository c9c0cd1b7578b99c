"""Task 18: the chocolate pudding and the butter from one of two identical shelf cabinets to the other."""

from __future__ import annotations

from predimem.envs.arena.subtasks import pick, place
from predimem.envs.arena.task import Task, Variant


def _variant(source: str, target: str) -> Variant:
    return Variant(
        instruction=(
            "Move the chocolate pudding, then the butter from the shelf cabinet that they are in to the other one."
        ),
        subtasks=(
            pick("pick chocolate", "chocolate_pudding"),
            place("place chocolate cabinet2", "chocolate_pudding", target, memory="transferring"),
            pick("pick butter", "butter", memory="transferring"),
            place("place butter cabinet2", "butter", target, memory="transferring"),
        ),
        start={"chocolate_pudding": source, "butter": source},
    )


TASK = Task(
    task_id=18,
    name="TransferChocolateButter",
    title="Transfer Chocolate Butter",
    category="transferring",
    objects=("chocolate_pudding", "butter"),
    fixtures=("shelf_left", "shelf_right"),
    variants=(_variant("shelf_left", "shelf_right"), _variant("shelf_right", "shelf_left")),
    drawn="which shelf cabinet is the source",
    remember="which of two identical shelf cabinets is the source, and what was moved",
)

"""Task 3: the cream cheese into the marked one of two baskets, then the chocolate pudding into the same one."""

from __future__ import annotations

from predimem.envs.arena.subtasks import pick, place
from predimem.envs.arena.task import Task, Variant


def _variant(basket: str) -> Variant:
    return Variant(
        instruction=(
            "Put the cream cheese onto the red mat in one of the two baskets. "
            "Then put the chocolate pudding into the same basket."
        ),
        subtasks=(
            pick("pick cream", "cream_cheese"),
            place("place cream into basket", "cream_cheese", basket),
            pick("pick pudding", "chocolate_pudding"),
            place("place pudding into basket", "chocolate_pudding", basket, memory="sequence"),
        ),
        mats=(basket,),
    )


TASK = Task(
    task_id=3,
    name="CreamPuddingIntoTargetContainer",
    title="Put Cream Pudding into Target Container in Order",
    category="sequence",
    objects=("cream_cheese", "chocolate_pudding", "popcorn"),
    fixtures=("basket_left", "basket_right"),
    variants=(_variant("basket_left"), _variant("basket_right")),
    drawn="which basket has the mat",
    remember="which basket the cream cheese went into: it covers the mark",
)

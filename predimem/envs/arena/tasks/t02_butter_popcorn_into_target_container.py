"""Task 2: the butter into the marked one of two baskets, then the popcorn into the same one."""

from __future__ import annotations

from predimem.envs.arena.subtasks import pick, place
from predimem.envs.arena.task import Task, Variant


def _variant(basket: str) -> Variant:
    return Variant(
        instruction=(
            "Put the butter onto the red mat in one of the two baskets. Then put the popcorn into the same basket."
        ),
        subtasks=(
            pick("pick butter", "butter"),
            place("place butter into basket", "butter", basket),
            pick("pick popcorn", "popcorn"),
            place("place popcorn into basket", "popcorn", basket, memory="sequence"),
        ),
        mats=(basket,),
    )


TASK = Task(
    task_id=2,
    name="ButterPopcornIntoTargetContainer",
    title="Put Butter Popcorn into Target Container in Order",
    category="sequence",
    objects=("butter", "popcorn", "cookies"),
    fixtures=("basket_left", "basket_right"),
    variants=(_variant("basket_left"), _variant("basket_right")),
    drawn="which basket has the mat",
    remember="which basket the butter went into: it covers the mark",
)

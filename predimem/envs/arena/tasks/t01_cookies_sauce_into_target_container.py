"""Task 1: the cookies into the marked one of two baskets, then the tomato sauce into the same one."""

from __future__ import annotations

from predimem.envs.arena.subtasks import pick, place
from predimem.envs.arena.task import Task, Variant


def _variant(basket: str) -> Variant:
    return Variant(
        instruction=(
            "Put the cookies onto the red mat in one of the two baskets. "
            "Then put the tomato sauce into the same basket."
        ),
        subtasks=(
            pick("pick cookies", "cookies"),
            place("place cookies into basket", "cookies", basket),
            pick("pick tomato sauce", "tomato_sauce"),
            place("place tomato into basket", "tomato_sauce", basket, memory="sequence"),
        ),
        mats=(basket,),
    )


TASK = Task(
    task_id=1,
    name="CookiesSauceIntoTargetContainer",
    title="Put Cookies Sauce into Target Container in Order",
    category="sequence",
    objects=("cookies", "tomato_sauce", "butter"),
    fixtures=("basket_left", "basket_right"),
    variants=(_variant("basket_left"), _variant("basket_right")),
    drawn="which basket has the mat",
    remember="which basket the cookies went into: they cover the mark",
)

"""A task of the arena in one file: `predimem play --task examples/tidy_the_table.py` (see docs/guides/own-task.md).

One of two baskets has a red mat on its floor. The butter goes onto it and covers it, so when it is the
popcorn's turn, with a drawer opened and shut in between, only memory tells which basket was the marked one.
"""

from predimem.envs.arena.subtasks import close_joint, open_joint, pick, place
from predimem.envs.arena.task import Task, Variant


def variant(basket: str) -> Variant:
    """basket: the marked one, which the seed draws and nobody tells the robot."""
    return Variant(
        instruction=(
            "Put the butter onto the red mat in one of the two baskets. Put the cookies into the top drawer and "
            "close it. Then put the popcorn into the same basket as the butter."
        ),
        subtasks=(
            pick("pick butter", "butter"),
            place("place butter into marked basket", "butter", basket),
            open_joint("open top drawer", "top_drawer"),
            pick("pick cookies", "cookies"),
            place("place cookies into top drawer", "cookies", "top_drawer"),
            close_joint("close top drawer", "top_drawer"),
            pick("pick popcorn", "popcorn"),
            place("place popcorn into same basket", "popcorn", basket, memory="sequence"),
        ),
        mats=(basket,),
    )


TASK = Task(
    task_id=101,
    name="TidyTheTable",
    title="Tidy the Table",
    category="sequence",
    objects=("butter", "cookies", "popcorn"),
    fixtures=("basket_left", "basket_right"),
    variants=(variant("basket_left"), variant("basket_right")),
    drawn="which basket has the mat",
    remember="which basket the butter went into: it covers the mark",
)

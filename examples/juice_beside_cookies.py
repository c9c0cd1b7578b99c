"""A short task to train on for: `predimem train arena --continue --tasks examples/juice_beside_cookies.py`.

The cookies go onto the mat in one of two baskets and cover it; then the orange juice goes into the same basket.
docs/guides/own-task.md says what a training of minutes reaches.
"""

from predimem.envs.arena.subtasks import pick, place
from predimem.envs.arena.task import Task, Variant


def variant(basket: str) -> Variant:
    return Variant(
        instruction=(
            "Put the cookies onto the red mat in one of the two baskets. "
            "Then put the orange juice into the same basket."
        ),
        subtasks=(
            pick("pick cookies", "cookies"),
            place("place cookies onto mat", "cookies", basket),
            pick("pick juice", "orange_juice"),
            place("place juice beside cookies", "orange_juice", basket, memory="sequence"),
        ),
        mats=(basket,),
    )


TASK = Task(
    task_id=102,
    name="JuiceBesideCookies",
    title="Juice beside Cookies",
    category="sequence",
    objects=("cookies", "orange_juice"),
    fixtures=("basket_left", "basket_right"),
    variants=(variant("basket_left"), variant("basket_right")),
)

"""Task 17: the butter onto the mat in the middle drawer, then the chocolate pudding into the same drawer.

The mat cannot be seen before the drawer is open. After that everything stays in sight.
"""

from __future__ import annotations

from predimem.envs.arena.subtasks import close_joint, open_joint, pick, place
from predimem.envs.arena.task import Task, Variant


def _variant(half: str) -> Variant:
    return Variant(
        instruction=(
            "Open the middle drawer and put the butter onto the red mat in it. "
            "Then put the chocolate pudding into the same drawer and close it."
        ),
        subtasks=(
            open_joint("open middle drawer", "middle_drawer"),
            pick("pick butter", "butter"),
            place("place butter", "butter", half),
            pick("pick chocolate", "chocolate_pudding"),
            place("place chocolate", "chocolate_pudding", "middle_drawer"),
            close_joint("close middle drawer", "middle_drawer"),
        ),
        mats=(half,),
    )


TASK = Task(
    task_id=17,
    name="ButterChocolateIntoMiddleDrawer",
    title="Put Butter Chocolate into Middle Drawer",
    category="occlusion",
    objects=("butter", "chocolate_pudding", "cookies"),
    variants=(_variant("middle_drawer_left"), _variant("middle_drawer_right")),
    drawn="which half of the drawer has the mat",
)

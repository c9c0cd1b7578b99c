"""Task 12: the cookies onto the mat in the middle drawer, then the chocolate pudding into the same drawer.

The mat cannot be seen before the drawer is open. After that everything stays in sight.
"""

from __future__ import annotations

from predimem.envs.arena.subtasks import close_joint, open_joint, pick, place
from predimem.envs.arena.task import Task, Variant


def _variant(half: str) -> Variant:
    return Variant(
        instruction=(
            "Open the middle drawer and put the cookies onto the red mat in it. "
            "Then put the chocolate pudding into the same drawer and close it."
        ),
        subtasks=(
            open_joint("open middle drawer", "middle_drawer"),
            pick("pick cookies", "cookies"),
            place("place cookies", "cookies", half),
            pick("pick chocolate", "chocolate_pudding"),
            place("place chocolate", "chocolate_pudding", "middle_drawer"),
            close_joint("close middle drawer", "middle_drawer"),
        ),
        mats=(half,),
    )


TASK = Task(
    task_id=12,
    name="CookiesChocolateIntoMiddleDrawer",
    title="Put Cookies Chocolate into Middle Drawer",
    category="occlusion",
    objects=("cookies", "chocolate_pudding", "cream_cheese"),
    variants=(_variant("middle_drawer_left"), _variant("middle_drawer_right")),
    drawn="which half of the drawer has the mat",
)

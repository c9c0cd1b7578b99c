"""Task 5: look into all three drawers; the butter goes into the only one that holds nothing."""

from __future__ import annotations

from predimem.envs.arena.fixtures import DRAWERS
from predimem.envs.arena.subtasks import close_joint, open_joint, place
from predimem.envs.arena.task import Task, Variant


def _variant(empty: str) -> Variant:
    which = empty.removesuffix("_drawer")
    first, second = (drawer for drawer in DRAWERS if drawer != empty)
    return Variant(
        instruction=(
            "Open and close the top, the middle and the bottom drawer in this order to see what is inside. "
            "Then put the butter into the drawer that is empty and close it."
        ),
        subtasks=(
            open_joint("open top drawer", "top_drawer"),
            close_joint("close top drawer", "top_drawer"),
            open_joint("open middle drawer", "middle_drawer", memory="occlusion"),
            close_joint("close middle drawer", "middle_drawer", memory="occlusion"),
            open_joint("open bottom drawer", "bottom_drawer", memory="occlusion"),
            close_joint("close bottom drawer", "bottom_drawer", memory="occlusion"),
            open_joint(f"open {which} drawer again", empty, memory="occlusion"),
            place(f"place butter into {which} drawer", "butter", empty, memory="occlusion"),
            close_joint(f"close {which} drawer final", empty, memory="occlusion"),
        ),
        start={"cookies": first, "popcorn": second},
    )


TASK = Task(
    task_id=5,
    name="ButterInEmptyDrawer",
    title="Put Butter in Empty Drawer",
    category="occlusion",
    objects=("butter", "cookies", "popcorn"),
    variants=tuple(_variant(drawer) for drawer in DRAWERS),
    drawn="which drawer is empty",
    remember="which drawers were looked into, and which of them was empty",
)

"""Task 4: look into all three drawers; the butter goes into the one that already holds something."""

from __future__ import annotations

from predimem.envs.arena.fixtures import DRAWERS
from predimem.envs.arena.subtasks import close_joint, open_joint, place
from predimem.envs.arena.task import Task, Variant


def _variant(occupied: str) -> Variant:
    which = occupied.removesuffix("_drawer")
    return Variant(
        instruction=(
            "Open and close the top, the middle and the bottom drawer in this order to see what is inside. "
            "Then put the butter into the drawer that is not empty and close it."
        ),
        subtasks=(
            open_joint("open top drawer", "top_drawer"),
            close_joint("close the top drawer", "top_drawer"),
            open_joint("open middle drawer", "middle_drawer", memory="occlusion"),
            close_joint("close middle drawer", "middle_drawer", memory="occlusion"),
            open_joint("open bottom drawer", "bottom_drawer", memory="occlusion"),
            close_joint("close bottom drawer", "bottom_drawer", memory="occlusion"),
            open_joint(f"open {which} drawer again", occupied, memory="occlusion"),
            place(f"place butter into {which} drawer", "butter", occupied, memory="occlusion"),
            close_joint(f"close {which} drawer final", occupied, memory="occlusion"),
        ),
        start={"cookies": occupied},
    )


TASK = Task(
    task_id=4,
    name="ButterInOccupiedDrawer",
    title="Put Butter in Not-Empty Drawer",
    category="occlusion",
    objects=("butter", "cookies", "chocolate_pudding"),
    variants=tuple(_variant(drawer) for drawer in DRAWERS),
    drawn="which drawer holds the cookies",
    remember="which drawers were looked into, and which of them was not empty",
)

"""Task 14: the cookies into one drawer and the chocolate into another, as told.

Task 11 with other labels, which name the drawers, and another bystander.
"""

from __future__ import annotations

from itertools import permutations

from predimem.envs.arena.fixtures import DRAWERS
from predimem.envs.arena.subtasks import close_joint, open_joint, pick, place
from predimem.envs.arena.task import Task, Variant


def _variant(cookies_in: str, chocolate_in: str) -> Variant:
    first, second = cookies_in.removesuffix("_drawer"), chocolate_in.removesuffix("_drawer")
    return Variant(
        instruction=(
            f"Put the cookies into the {first} drawer and close it. "
            f"Then put the chocolate pudding into the {second} drawer and close it."
        ),
        subtasks=(
            open_joint(f"open {first} drawer", cookies_in),
            pick("pick cookies", "cookies"),
            place(f"place cookies in {first} drawer", "cookies", cookies_in),
            close_joint(f"close {first} drawer", cookies_in),
            open_joint(f"open {second} drawer", chocolate_in, memory="occlusion"),
            pick("pick chocolate", "chocolate_pudding"),
            place(f"place chocolate in {second} drawer", "chocolate_pudding", chocolate_in),
            close_joint(f"close {second} drawer", chocolate_in),
        ),
    )


TASK = Task(
    task_id=14,
    name="CookiesChocolateIntoDrawerRespectively",
    title="Put Cookies Chocolate into Drawer Respectively",
    category="occlusion",
    objects=("cookies", "chocolate_pudding", "cream_cheese"),
    variants=tuple(_variant(first, second) for first, second in permutations(DRAWERS, 2)),
    drawn="which two drawers (told)",
    remember="that the cookies are in a drawer, which is shut by then",
)

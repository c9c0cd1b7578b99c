"""Task 23: the cream cheese onto the mat in the microwave, then the popcorn beside it, on the same side."""

from __future__ import annotations

from predimem.envs.arena.subtasks import close_joint, open_joint, pick, place
from predimem.envs.arena.task import Task, Variant


def _variant(side: str) -> Variant:
    return Variant(
        instruction=(
            "Open the microwave and put the cream cheese onto the red mat in it. "
            "Then put the popcorn where the cream cheese is, and close the microwave."
        ),
        subtasks=(
            open_joint("open microwave", "microwave"),
            pick("pick cream", "cream_cheese"),
            place("place cream", "cream_cheese", side),
            pick("pick popcorn", "popcorn", memory="occlusion"),
            place("place popcorn", "popcorn", side, memory="occlusion"),
            close_joint("close microwave", "microwave", memory="occlusion"),
        ),
        mats=(side,),
    )


TASK = Task(
    task_id=23,
    name="CreamPopcornIntoMicrowave",
    title="Put Cream Popcorn into Microwave",
    category="occlusion",
    objects=("cream_cheese", "popcorn", "butter"),
    variants=(_variant("microwave_left"), _variant("microwave_right")),
    drawn="which side of the microwave has the mat",
    remember="what is in the microwave and on which side: the cameras hardly see its left half",
)

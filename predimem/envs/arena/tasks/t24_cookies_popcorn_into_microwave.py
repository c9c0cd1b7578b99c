"""Task 24: the cookies onto the mat in the microwave, then the popcorn beside them, on the same side."""

from __future__ import annotations

from predimem.envs.arena.subtasks import close_joint, open_joint, pick, place
from predimem.envs.arena.task import Task, Variant


def _variant(side: str) -> Variant:
    return Variant(
        instruction=(
            "Open the microwave and put the cookies onto the red mat in it. "
            "Then put the popcorn where the cookies are, and close the microwave."
        ),
        subtasks=(
            open_joint("open microwave", "microwave"),
            pick("pick cookies", "cookies"),
            place("place cookies", "cookies", side),
            pick("pick popcorn", "popcorn", memory="occlusion"),
            place("place popcorn", "popcorn", side, memory="occlusion"),
            close_joint("close microwave", "microwave", memory="occlusion"),
        ),
        mats=(side,),
    )


TASK = Task(
    task_id=24,
    name="CookiesPopcornIntoMicrowave",
    title="Put Cookies Popcorn into Microwave",
    category="occlusion",
    objects=("cookies", "popcorn", "chocolate_pudding"),
    variants=(_variant("microwave_left"), _variant("microwave_right")),
    drawn="which side of the microwave has the mat",
    remember="what is in the microwave and on which side: the cameras hardly see its left half",
)

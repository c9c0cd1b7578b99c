"""Task 21: the butter onto the mat in the microwave, then the chocolate pudding beside it, on the same side."""

from __future__ import annotations

from predimem.envs.arena.subtasks import close_joint, open_joint, pick, place
from predimem.envs.arena.task import Task, Variant


def _variant(side: str) -> Variant:
    return Variant(
        instruction=(
            "Open the microwave and put the butter onto the red mat in it. "
            "Then put the chocolate pudding where the butter is, and close the microwave."
        ),
        subtasks=(
            open_joint("open microwave", "microwave"),
            pick("pick butter", "butter"),
            place("place butter", "butter", side),
            pick("pick chocolate", "chocolate_pudding", memory="occlusion"),
            place("place chocolate", "chocolate_pudding", side, memory="occlusion"),
            close_joint("close microwave", "microwave", memory="occlusion"),
        ),
        mats=(side,),
    )


TASK = Task(
    task_id=21,
    name="ButterChocolateIntoMicrowave",
    title="Put Butter Chocolate into Microwave",
    category="occlusion",
    objects=("butter", "chocolate_pudding", "cookies"),
    variants=(_variant("microwave_left"), _variant("microwave_right")),
    drawn="which side of the microwave has the mat",
    remember="what is in the microwave and on which side: the cameras hardly see its left half",
)

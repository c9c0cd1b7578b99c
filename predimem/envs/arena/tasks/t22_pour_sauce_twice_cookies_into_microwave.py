"""Task 22: tomato sauce over the cookies, twice and not once more, then the cookies into the microwave."""

from __future__ import annotations

from predimem.envs.arena.subtasks import close_joint, open_joint, pick, place, pour
from predimem.envs.arena.task import Task, Variant


def _variant(side: str) -> Variant:
    return Variant(
        instruction=(
            "Pour tomato sauce over the cookies twice and stand the sauce back on the table. "
            "Then open the microwave, put the cookies onto the red mat in it, and close it."
        ),
        subtasks=(
            pick("pick tomato", "tomato_sauce"),
            pour("pour first", "tomato_sauce", "cookies", 1, memory="counting"),
            pour("pour second", "tomato_sauce", "cookies", 2, memory="counting"),
            place("place tomato aside", "tomato_sauce", "table", memory="counting", upright=True),
            open_joint("open microwave", "microwave", memory="sequence"),
            pick("pick cookies", "cookies"),
            place("place cookies", "cookies", side),
            close_joint("close microwave", "microwave", memory="occlusion"),
        ),
        mats=(side,),
    )


TASK = Task(
    task_id=22,
    name="PourSauceTwiceCookiesIntoMicrowave",
    title="Pour Sauce Twice Put Cookies into Microwave",
    category="sequence",
    objects=("tomato_sauce", "cookies"),
    variants=(_variant("microwave_left"), _variant("microwave_right")),
    drawn="which side of the microwave has the mat",
    remember="how often it was poured, that it was poured at all, and that the cookies are in the microwave",
)

"""Task 6: pour tomato sauce over the cookies, twice and not once more, then stand it in the drainer.

Nothing is hidden at the start: twice is twice. Only the positions are drawn.
"""

from __future__ import annotations

from predimem.envs.arena.subtasks import pick, place, pour
from predimem.envs.arena.task import Task, Variant

TASK = Task(
    task_id=6,
    name="PourSauceOnCookiesTwice",
    title="Pour Sauce on Cookies Twice Place Sauce into Drainer",
    category="counting",
    objects=("tomato_sauce", "cookies", "milk"),
    fixtures=("drainer",),
    variants=(
        Variant(
            instruction="Pour tomato sauce over the cookies twice, then stand the sauce in the drainer.",
            subtasks=(
                pick("pick tomato sauce", "tomato_sauce"),
                pour("pour tomato sauce over cookies 1st", "tomato_sauce", "cookies", 1, memory="counting"),
                pour("pour tomato sauce over cookies 2nd", "tomato_sauce", "cookies", 2, memory="counting"),
                place("place tomato sauce bowl drainer", "tomato_sauce", "drainer", memory="counting", upright=True),
            ),
        ),
    ),
    remember="how often it was poured: a pour leaves no trace",
)

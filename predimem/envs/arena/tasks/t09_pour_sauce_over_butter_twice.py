"""Task 9: the butter into the frying pan, tomato sauce over it twice and not once more.

Nothing is hidden at the start: twice is twice. Only the positions are drawn.
"""

from __future__ import annotations

from predimem.envs.arena.subtasks import pick, place, pour
from predimem.envs.arena.task import Task, Variant

TASK = Task(
    task_id=9,
    name="PourSauceOverButterTwice",
    title="Pour Sauce Twice over Butter in Frypan Place Sauce into Drainer",
    category="counting",
    objects=("butter", "tomato_sauce", "cookies"),
    fixtures=("frying_pan", "drainer"),
    variants=(
        Variant(
            instruction=(
                "Put the butter into the frying pan and pour tomato sauce over it twice. "
                "Then stand the sauce in the drainer."
            ),
            subtasks=(
                pick("pick butter", "butter"),
                place("place butter in frypan", "butter", "frying_pan"),
                pick("pick tomato sauce", "tomato_sauce"),
                pour("pour tomato sauce over butter 1st", "tomato_sauce", "frying_pan", 1, memory="counting"),
                pour("pour tomato sauce over butter 2nd", "tomato_sauce", "frying_pan", 2, memory="counting"),
                place("place tomato sauce bowl drainer", "tomato_sauce", "drainer", memory="counting", upright=True),
            ),
        ),
    ),
    remember="how often it was poured: a pour leaves no trace",
)

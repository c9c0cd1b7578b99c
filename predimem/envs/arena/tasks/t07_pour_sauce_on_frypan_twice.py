"""Task 7: pour tomato sauce into the frying pan, twice and not once more, then stand it in the drainer.

Nothing is hidden at the start: twice is twice. Only the positions are drawn.
"""

from __future__ import annotations

from predimem.envs.arena.subtasks import pick, place, pour
from predimem.envs.arena.task import Task, Variant

TASK = Task(
    task_id=7,
    name="PourSauceOnFrypanTwice",
    title="Pour Sauce on Frypan Twice Place Sauce into Drainer",
    category="counting",
    objects=("tomato_sauce", "butter"),
    fixtures=("frying_pan", "drainer"),
    variants=(
        Variant(
            instruction="Pour tomato sauce into the frying pan twice, then stand the sauce in the drainer.",
            subtasks=(
                pick("pick tomato sauce", "tomato_sauce"),
                pour("pour tomato sauce into frypan 1st", "tomato_sauce", "frying_pan", 1, memory="counting"),
                pour("pour tomato sauce into frypan 2nd", "tomato_sauce", "frying_pan", 2, memory="counting"),
                place("place tomato sauce bowl drainer", "tomato_sauce", "drainer", memory="counting", upright=True),
            ),
        ),
    ),
    remember="how often it was poured: a pour leaves no trace",
)

"""Task 15: the butter into the frying pan, milk over it twice and not once more.

Nothing is hidden at the start: twice is twice. Only the positions are drawn.
"""

from __future__ import annotations

from predimem.envs.arena.subtasks import pick, place, pour
from predimem.envs.arena.task import Task, Variant

TASK = Task(
    task_id=15,
    name="PourMilkOverButterTwice",
    title="Pour Milk Twice over Butter in Frypan",
    category="counting",
    objects=("butter", "milk", "orange_juice"),
    fixtures=("frying_pan",),
    variants=(
        Variant(
            instruction=(
                "Put the butter into the frying pan and pour milk over it twice. Then stand the milk back on the table."
            ),
            subtasks=(
                pick("pick butter", "butter"),
                place("place butter in frypan", "butter", "frying_pan"),
                pick("pick milk", "milk"),
                pour("pour milk in frypan 1st", "milk", "frying_pan", 1, memory="counting"),
                pour("pour milk in frypan 2nd", "milk", "frying_pan", 2, memory="counting"),
                place("place milk on table", "milk", "table", memory="counting", upright=True),
            ),
        ),
    ),
    remember="how often it was poured: a pour leaves no trace",
)

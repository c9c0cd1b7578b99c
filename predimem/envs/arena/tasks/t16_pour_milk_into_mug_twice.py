"""Task 16: pour milk into the red mug, twice and not once more, then stand it in the drainer.

Nothing is hidden at the start: twice is twice. Only the positions are drawn.
"""

from __future__ import annotations

from predimem.envs.arena.subtasks import pick, place, pour
from predimem.envs.arena.task import Task, Variant

TASK = Task(
    task_id=16,
    name="PourMilkIntoMugTwice",
    title="Pour Milk Twice over Mug Place Milk into Drainer",
    category="counting",
    objects=("milk", "orange_juice"),
    fixtures=("mug_red", "mug_white", "drainer"),
    variants=(
        Variant(
            instruction="Pour milk into the red coffee mug twice, then stand the milk in the drainer.",
            subtasks=(
                pick("pick milk", "milk"),
                pour("pour milk into red coffee mug 1st", "milk", "mug_red", 1, memory="counting"),
                pour("pour milk into red coffee mug 2nd", "milk", "mug_red", 2, memory="counting"),
                place("place milk bowl drainer", "milk", "drainer", memory="counting", upright=True),
            ),
        ),
    ),
    remember="how often it was poured: a pour leaves no trace",
)

"""Task 10: pour wine into the mug, twice and not once more."""

from __future__ import annotations

from datagen.arena.subtasks import pick, place, pour
from datagen.arena.task import Task, Variant

TASK = Task(
    task_id=10,
    name="PourWineIntoMugTwice",
    title="Pour Wine into Mug Twice",
    category="counting",
    objects=("wine_bottle", "cookies"),
    fixtures=("mug_red",),
    variants=(
        Variant(
            instruction="Pour wine into the mug twice, then put the bottle back on the table.",
            subtasks=(
                pick("pick wine bottle", "wine_bottle"),
                pour("pour wine into mug 1st", "wine_bottle", "mug_red", 1, memory="counting"),
                pour("pour wine into mug 2nd", "wine_bottle", "mug_red", 2, memory="counting"),
                place("place wine bottle on table", "wine_bottle", "table", memory="counting", upright=True),
            ),
        ),
    ),
)

"""Task 10: pour wine into the mug that was asked for, twice and not once more."""

from __future__ import annotations

from predimem.envs.arena.subtasks import pick, place, pour
from predimem.envs.arena.task import Task, Variant


def _variant(mug: str) -> Variant:
    colour = mug.removeprefix("mug_")
    return Variant(
        instruction=f"Pour wine into the {colour} mug twice, then stand the bottle back on the table.",
        subtasks=(
            pick("pick wine bottle", "wine_bottle"),
            pour("pour wine into mug 1st", "wine_bottle", mug, 1, memory="counting"),
            pour("pour wine into mug 2nd", "wine_bottle", mug, 2, memory="counting"),
            place("place wine bottle on table", "wine_bottle", "table", memory="counting", upright=True),
        ),
    )


TASK = Task(
    task_id=10,
    name="PourWineIntoMugTwice",
    title="Pour Wine into Mug Twice",
    category="counting",
    objects=("wine_bottle", "cookies"),
    fixtures=("mug_red", "mug_white"),
    variants=(_variant("mug_red"), _variant("mug_white")),
    drawn="red or white mug (told)",
    remember="how often it was poured: a pour leaves no trace",
)

"""The families of the benchmark: what an earlier session shows (the lesson) and a later one needs and cannot see.

Lesson and test are tasks of the arena, in its own vocabulary. A family has a few *values*, one of which the lesson
shows: the drawer that the cookies went into. In most families a value is a variant of one task; tasks whose values
differ in the number of their stages, as in `pours`, are one task for each value.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from predimem.envs.arena.fixtures import DRAWERS
from predimem.envs.arena.subtasks import Subtask, close_joint, open_joint, pick, place, pour
from predimem.envs.arena.task import Category, Task, Variant


@dataclass(frozen=True)
class Family:
    """One family.

    remember: for people, what the lesson shows.
    answers: for each value what a planner says that the robot has to do in the test; no two are the same in the world.
    lessons, tests: one task with a variant for each value, or one task for each value.
    """

    name: str
    remember: str
    answers: tuple[str, ...]
    lessons: tuple[Task, ...]
    tests: tuple[Task, ...]

    def __post_init__(self) -> None:
        for tasks in (self.lessons, self.tests):
            count = len(tasks[0].variants) if len(tasks) == 1 else len(tasks)
            if count != len(self.answers):
                raise ValueError(f"family {self.name}: {len(self.answers)} answers for {count} values")

    @property
    def values(self) -> int:
        return len(self.answers)

    @property
    def chance(self) -> float:
        return 1 / self.values

    @property
    def instruction(self) -> str:
        """What the robot is told in the test, whatever the value."""
        return self.tests[0].variants[0].instruction

    def subtasks(self, value: int) -> tuple[Subtask, ...]:
        """What has to be done in the test where the lesson showed this value."""
        task = self.tests[0] if len(self.tests) == 1 else self.tests[value]
        return task.variants[value if len(self.tests) == 1 else 0].subtasks


def _family(
    number: int,
    name: str,
    remember: str,
    lesson: Callable[[int], tuple[Subtask, ...]],
    test: Callable[[int], tuple[Subtask, ...]],
    told: tuple[str, str],
    answers: tuple[str, ...],
    objects: tuple[tuple[str, ...], tuple[str, ...]],
    fixtures: tuple[str, ...] = (),
    starts: Callable[[int], dict[str, str]] = lambda value: {},
    category: Category = "transferring",
    apart: bool = False,
) -> Family:
    """told, objects: of lesson and test. apart: each value is a task of its own."""

    def tasks(which: int, stages: Callable[[int], tuple[Subtask, ...]]) -> tuple[Task, ...]:
        variants = [Variant(told[which], stages(v), starts(v) if which else {}) for v in range(len(answers))]
        groups = [(variant,) for variant in variants] if apart else [tuple(variants)]
        kind = ("Lesson", "Recall")[which]
        return tuple(
            Task(
                task_id=1000 + 100 * which + 10 * number + index,
                name=f"{kind}{name.capitalize()}{index + 1 if apart else ''}",
                title=told[which],
                category=category,
                objects=objects[which],
                fixtures=fixtures,
                variants=group,
            )
            for index, group in enumerate(groups)
        )

    return Family(name, remember, answers, tasks(0, lesson), tasks(1, test))


def _which(drawer: str) -> str:
    return drawer.removesuffix("_drawer")


def _pours(value: int) -> tuple[Subtask, ...]:
    ordinals = ("1st", "2nd", "3rd")
    poured = (
        pour(f"pour tomato sauce over cookies {ordinals[i]}", "tomato_sauce", "cookies", i + 1, memory="counting")
        for i in range(value + 1)
    )
    away = place("place tomato sauce in drainer", "tomato_sauce", "drainer", upright=True)
    return (pick("pick tomato sauce", "tomato_sauce"), *poured, away)


PLATES, SPOTS, MUGS = ("plate_left", "plate_right"), ("basket_left", "frying_pan"), ("mug_red", "mug_white")
ORDERS = (("butter", "cream_cheese"), ("cream_cheese", "butter"))
THINGS = ("butter", "popcorn", "chocolate_pudding")

FAMILIES: dict[str, Family] = {
    family.name: family
    for family in (
        _family(
            1, "drawer", "which drawer the cookies went into",
            lambda v: (
                open_joint(f"open {_which(DRAWERS[v])} drawer", DRAWERS[v]),
                place(f"place cookies in {_which(DRAWERS[v])} drawer", "cookies", DRAWERS[v]),
                close_joint(f"close {_which(DRAWERS[v])} drawer", DRAWERS[v]),
            ),
            lambda v: (open_joint(f"open {_which(DRAWERS[v])} drawer", DRAWERS[v], memory="occlusion"),),
            ("Put the cookies away into a drawer.", "Open the drawer that the cookies were put away into."),
            tuple(f"open the {_which(drawer)} drawer" for drawer in DRAWERS),
            (("cookies", "milk"), ("cookies", "milk")),
            starts=lambda v: {"cookies": DRAWERS[v]},
            category="occlusion",
        ),
        _family(
            2, "plate", "which plate is the guest's",
            lambda v: (place("place pudding on plate", "chocolate_pudding", PLATES[v]),),
            lambda v: (place("place cream cheese on plate", "cream_cheese", PLATES[v], memory="transferring"),),
            ("Serve the pudding on the guest's plate.", "Serve the cream cheese on the guest's plate."),
            ("use the left plate", "use the right plate"),
            (("chocolate_pudding", "orange_juice"), ("cream_cheese", "orange_juice")),
            fixtures=PLATES,
        ),
        _family(
            3, "pours", "how often this person wants the sauce poured",
            _pours, _pours,
            (
                "Pour tomato sauce over the cookies the way this person wants it.",
                "Pour tomato sauce over the cookies as often as this person wants it.",
            ),
            ("pour once", "pour twice", "pour three times"),
            (("tomato_sauce", "cookies"), ("tomato_sauce", "cookies")),
            fixtures=("drainer",),
            category="counting",
            apart=True,
        ),
        _family(
            4, "order", "the order in which things were put away",
            lambda v: tuple(place(f"place {n.replace('_', ' ')} in basket", n, "basket_right") for n in ORDERS[v]),
            lambda v: tuple(
                place(f"place {n.replace('_', ' ')} in basket", n, "basket_right", memory="sequence") for n in ORDERS[v]
            ),
            (
                "Tidy butter and cream cheese into the basket, one after the other.",
                "Tidy butter and cream cheese into the basket in the same order as last time.",
            ),
            ("the butter first", "the cream cheese first"),
            (("butter", "cream_cheese"), ("butter", "cream_cheese")),
            fixtures=("basket_right",),
            category="sequence",
        ),
        _family(
            5, "spot", "a place that was shown by demonstration",
            lambda v: (place("place popcorn at its spot", "popcorn", SPOTS[v]),),
            lambda v: (place("place popcorn at its spot", "popcorn", SPOTS[v], memory="transferring"),),
            ("Watch where the popcorn belongs.", "Bring the popcorn to where it belongs."),
            ("bring it to the basket", "bring it to the frying pan"),
            (("popcorn", "wine_bottle"), ("popcorn", "wine_bottle")),
            fixtures=SPOTS,
        ),
        _family(
            6, "mug", "the colour of the mug that was forbidden",
            lambda v: (pick("pick milk", "milk"), pour("pour milk into the mug", "milk", MUGS[v], 1)),
            lambda v: (
                pick("pick milk", "milk"),
                pour("pour milk into the mug", "milk", MUGS[v], 1, memory="transferring"),
            ),
            ("Pour milk into the mug that is not forbidden.", "Pour milk into a mug, not into the forbidden one."),
            ("use the red mug", "use the white mug"),
            (("milk", "cookies"), ("milk", "cookies")),
            fixtures=MUGS,
        ),
        _family(
            7, "thing", "which thing was shown",
            lambda v: (pick("pick the thing", THINGS[v]),),
            lambda v: (pick("pick the thing", THINGS[v], memory="transferring"),),
            ("Look, this thing is mine.", "Hand me the thing that is mine."),
            ("pick the butter", "pick the popcorn", "pick the chocolate pudding"),
            (THINGS, THINGS),
        ),
    )
}  # fmt: skip

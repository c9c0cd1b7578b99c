"""What a task has to keep to, so that it can be built, played and judged; each fault as one sentence."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from itertools import combinations
from typing import Any, Protocol, get_args

from predimem.envs.arena import fixtures as f
from predimem.envs.arena.objects import OBJECTS
from predimem.envs.arena.predicates import Poured
from predimem.envs.arena.subtasks import Memory, Skill, Subtask
from predimem.envs.arena.variant import Variant
from predimem.envs.arena.visits import Carry, check_visits

MOST_ON_TABLE = 4  # more do not find room at their distance from each other

# How far a fixture reaches from its middle in x and y.
REACH_M: dict[str, tuple[float, float]] = {
    "basket": (f.BASKET_HALF_M, f.BASKET_HALF_M),
    "drainer": f.DRAINER_HALF_M,
    "plate": (f.PLATE_RADIUS_M, f.PLATE_RADIUS_M),
    "frying_pan": (f.PAN_RADIUS_M, f.PAN_RADIUS_M),
    "mug": (f.MUG_RADIUS_M, f.MUG_RADIUS_M),
    "shelf": f.SHELF_HALF_M,
}


class Task(Protocol):
    """What is checked: the fields of `predimem.envs.arena.task.Task`."""

    @property
    def task_id(self) -> int: ...
    @property
    def name(self) -> str: ...
    @property
    def category(self) -> str: ...
    @property
    def objects(self) -> tuple[str, ...]: ...
    @property
    def fixtures(self) -> tuple[str, ...]: ...
    @property
    def variants(self) -> tuple[Variant, ...]: ...
    @property
    def same_order(self) -> bool: ...


def check_task(task: Task, categories: tuple[str, ...]) -> None:
    """Raises ValueError with the first fault: what was expected, what came, what there is."""
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9]*(-[0-9]+)?", str(task.name)):
        raise ValueError(f"a task's name is letters and digits, such as 'TidyTheTable'; got {task.name!r}")
    try:
        _check_head(task, categories)
        for index, variant in enumerate(task.variants):
            _check_variant(task, variant, f"variant {index + 1}" if len(task.variants) > 1 else "its variant")
        _check_alike(task.variants, task.same_order)
        _check_labels_tell(task.variants)
    except ValueError as error:
        raise ValueError(f"task {task.name}: {error}") from None


def _check_head(task: Task, categories: tuple[str, ...]) -> None:
    if type(task.task_id) is not int or task.task_id < 1:
        raise ValueError(f"task_id is a whole number of 1 or more; got {task.task_id!r}")
    if task.category not in categories:
        raise ValueError(f"category is one of {', '.join(categories)}; got {task.category!r}")
    for field in ("objects", "fixtures", "variants"):
        _check_tuple(getattr(task, field), field)
    _check_known(task.objects, OBJECTS, "object")
    given = [name for name in task.fixtures if name in f.KITCHEN]
    if given:
        raise ValueError(f"{given[0]!r} stands in every scene: leave it out of the fixtures")
    _check_known(task.fixtures, [name for name in f.FIXTURES if name not in f.KITCHEN], "fixture")
    for field in ("objects", "fixtures"):
        double = [name for name, count in Counter(getattr(task, field)).items() if count > 1]
        if double:
            raise ValueError(f"{field} names {double[0]!r} twice; there is one of each")
    for first, second in combinations(task.fixtures, 2):
        if _overlap(f.FIXTURES[first], f.FIXTURES[second]):
            raise ValueError(f"{first} and {second} stand in the same spot: choose one of them")
    if not task.objects or not task.variants:
        raise ValueError("it needs at least one object and one variant")


def _check_variant(task: Task, variant: Variant, where: str) -> None:
    if not hasattr(variant, "subtasks"):
        raise ValueError(f"{where} is {variant!r}; expected a Variant(instruction=..., subtasks=...)")
    if not isinstance(variant.instruction, str) or not variant.instruction.strip():
        raise ValueError(f"{where} needs an instruction, which is what the robot is told; got {variant.instruction!r}")
    _check_tuple(variant.subtasks, f"subtasks of {where}")
    _check_tuple(variant.mats, f"mats of {where}")
    if not variant.subtasks:
        raise ValueError(f"{where} has no subtasks")
    for place in (*variant.start.values(), *variant.mats):
        _check_place(task, place, where)
    _check_start(task, variant, where)
    labels: set[str] = set()
    for subtask in variant.subtasks:
        if not isinstance(subtask, Subtask):
            raise ValueError(f"{where}: {subtask!r} is no subtask; make it with pick, place, pour, open_joint, ...")
        if not re.fullmatch(r"[^_/\\\n]*[^_/\\\s][^_/\\\n]*", subtask.label):
            raise ValueError(f"{where}: a label is plain words without _, / and \\; got {subtask.label!r}")
        if subtask.label in labels:
            raise ValueError(f"{where} has two subtasks with the label {subtask.label!r}; labels tell them apart")
        labels.add(subtask.label)
        _check_subtask(task, subtask, f"{where}, {subtask.label!r}")
    _check_pours(variant, where)
    try:
        check_visits(variant.pauses, variant.visits, task.objects, len(variant.subtasks))
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from None
    for act in (act for visit in variant.visits for act in visit.acts):
        if isinstance(act, Carry):
            _check_place(task, act.place, where)
            _check_height(act.object, act.place, f"{where}: somebody takes {act.object!r} to {act.place!r}")


def _check_start(task: Task, variant: Variant, where: str) -> None:
    for name, place in variant.start.items():
        if name not in task.objects:
            raise ValueError(
                f"{where}: start names {name!r}, which is not among the objects: {', '.join(task.objects)}"
            )
        if place == "table":
            raise ValueError(f"{where}: leave {name!r} out of start; what is not in start stands on the table")
        _check_height(name, place, f"{where}: {name!r} starts in {place!r}")
    for place, count in Counter(variant.start.values()).items():
        if count > len(f.PLACES[place].slots_m):
            raise ValueError(
                f"{where}: {count} objects start in {place}, which has room for {len(f.PLACES[place].slots_m)}"
            )
    on_table = [name for name in task.objects if name not in variant.start]
    if len(on_table) > MOST_ON_TABLE:
        raise ValueError(
            f"{where}: {len(on_table)} objects start on the table, which has room for {MOST_ON_TABLE}: "
            "let some of them start in a place, or leave them out"
        )


def _check_subtask(task: Task, subtask: Subtask, where: str) -> None:
    if not subtask.object and subtask.skill in (Skill.MOVE, Skill.PLACE, Skill.POUR):
        raise ValueError(f"{where}: it is done with an object; name one of {', '.join(task.objects)}")
    if subtask.object and subtask.object not in task.objects:
        _check_known([subtask.object], OBJECTS, "object", where)
        raise ValueError(f"{where}: add {subtask.object!r} to the task's objects ({', '.join(task.objects)})")
    if subtask.memory is not None and subtask.memory not in get_args(Memory):
        raise ValueError(
            f"{where}: memory={subtask.memory!r}; expected one of {', '.join(map(repr, get_args(Memory)))}, or nothing "
            "where the decision can be seen"
        )
    if subtask.skill is Skill.PLACE:
        _check_place(task, subtask.target, where)
        _check_height(subtask.object, subtask.target, where)
    elif subtask.skill in (Skill.OPEN, Skill.CLOSE):
        _check_known([subtask.target], f.JOINTS, "joint", where)
    elif subtask.skill is Skill.POUR:
        if not OBJECTS[subtask.object].pourable:
            pourable = ", ".join(name for name, spec in OBJECTS.items() if spec.pourable)
            raise ValueError(f"{where}: nothing pours out of {subtask.object!r}; out of these it does: {pourable}")
        _check_known([subtask.target], f.POUR_RADIUS_M, "receiver of a pour", where)
        if subtask.target not in (*task.objects, *task.fixtures):
            raise ValueError(f"{where}: add {subtask.target!r} to the task's objects or fixtures")


def _check_height(name: str, place: str, where: str) -> None:
    """What stands in a drawer must not stick out of it: the drawer would not open or close."""
    frame = f.PLACES[place].frame
    height_m, room_m = 2 * OBJECTS[name].half_height_m, f.CABINET.drawer_height_m - f.PLACES[place].centre_m[2]
    if frame in f.DRAWERS and height_m > room_m:
        low = ", ".join(n for n, spec in OBJECTS.items() if 2 * spec.half_height_m <= room_m)
        raise ValueError(
            f"{where}: it is {100 * height_m:.1f} cm tall, and a drawer has room for {100 * room_m:.1f} cm; these fit: "
            f"{low}"
        )


def _check_pours(variant: Variant, where: str) -> None:
    """The environment counts the pours of one bottle over one thing."""
    pours = [s.done for s in variant.subtasks if isinstance(s.done, Poured)]
    if len({(pour.object, pour.target) for pour in pours}) > 1:
        raise ValueError(f"{where}: all pours of a task are of one object over one target")
    times = [pour.times for pour in pours]
    if times != list(range(1, len(times) + 1)):
        raise ValueError(f"{where}: times of the pours is counted up, 1, 2, ...; got {', '.join(map(str, times))}")


def _check_alike(variants: tuple[Variant, ...], same_order: bool) -> None:
    """Stages belong to the task, so its variants have as many, and unless it says so the same skills in one order."""
    first = [str(s.skill) for s in variants[0].subtasks]
    for index, variant in enumerate(variants[1:], 2):
        skills = [str(s.skill) for s in variant.subtasks]
        if skills != first if same_order else len(skills) != len(first):
            raise ValueError(
                "all variants have the same number of subtasks with the same skills; variant 1 has "
                f"{', '.join(first)} ({len(first)}), variant {index} has {', '.join(skills)} ({len(skills)})"
            )


def _check_labels_tell(variants: tuple[Variant, ...]) -> None:
    """A label that has several targets gets the target behind it; with it, it has to mean one thing only."""
    meant: dict[tuple[str, str], Subtask] = {}
    for subtask in (subtask for variant in variants for subtask in variant.subtasks):
        other = meant.setdefault((subtask.label, subtask.target), subtask)
        if other.motion != subtask.motion:
            what = " and ".join(f"{s.skill} {(s.object or s.target)!r}" for s in (other, subtask))
            raise ValueError(
                f"the label {subtask.label!r} means {what} with the same target {subtask.target!r} in different "
                "variants: name the object in the label"
            )


def _check_place(task: Task, place: str, where: str) -> None:
    _check_known([place], f.PLACES, "place", where)
    frame = f.PLACES[place].frame
    if frame not in ("table", *task.fixtures, *f.KITCHEN, *f.DRAWERS):
        raise ValueError(f"{where}: {place!r} is not in the scene: add {frame!r} to the task's fixtures")


def _check_known(names: Iterable[Any], known: Iterable[str], what: str, where: str = "") -> None:
    for name in names:
        if name not in known:
            raise ValueError(f"{where}{': ' if where else ''}unknown {what} {name!r}; there are: {', '.join(known)}")


def _check_tuple(value: Any, what: str) -> None:
    if not isinstance(value, tuple):
        raise ValueError(f"{what} is a tuple; got {value!r}. A tuple of one has a comma: (x,)")


def _overlap(first: f.FixtureSpec, second: f.FixtureSpec) -> bool:
    jitter_m = first.jitter_m + second.jitter_m
    return all(
        abs(first.position_m[axis] - second.position_m[axis])
        < REACH_M[first.kind][axis] + REACH_M[second.kind][axis] + jitter_m
        for axis in (0, 1)
    )

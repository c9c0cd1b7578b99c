"""The 26 declarations against what was released with RoboMemArena, and against their own rules."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

import pytest

from predimem.core.subtask_labels import released
from predimem.envs.arena import tasks
from predimem.envs.arena.fixtures import DRAWERS
from predimem.envs.arena.predicates import Poured
from predimem.envs.arena.subtasks import Skill, Subtask
from predimem.envs.arena.task import CATEGORIES, Task, Variant, memory_ratio
from predimem.envs.arena.tasks import TASKS, task_of
from predimem.envs.arena.tasks.__main__ import page

ROOT = Path(__file__).parents[3]
RELEASED = json.loads((Path(__file__).parent / "robomemarena_tasks.json").read_text())["tasks"]
EVERY_TASK = pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
PLACE_NAMES = re.compile(r"\b(top|middle|bottom)\b")


def words(variant: Variant) -> list[str]:
    """The labels without targets."""
    return [released(subtask.label) for subtask in variant.subtasks]


@EVERY_TASK
def test_title_category_and_labels_are_those_released(task: Task) -> None:
    theirs = RELEASED[task.task_id - 1]
    assert (theirs["task_id"], theirs["name"], theirs["category"]) == (task.task_id, task.title, task.category)
    assert any(words(variant) == theirs["subtasks"] for variant in task.variants)
    for variant in task.variants:  # the others differ in the names of places alone
        assert [PLACE_NAMES.sub("", s) for s in words(variant)] == [PLACE_NAMES.sub("", s) for s in theirs["subtasks"]]


def test_all_tasks_are_there_in_order_and_told_apart() -> None:
    assert [task.task_id for task in TASKS] == list(range(1, 27))
    assert len({task.name for task in TASKS}) == len({task.env_id for task in TASKS}) == 26
    assert all(re.fullmatch(r"(?:[A-Z][a-z]+)+", task.name) for task in TASKS)
    assert TASKS[3].env_id == "predimem/Arena-ButterInOccupiedDrawer-v0"
    categories = Counter(task.category for task in TASKS)
    assert [categories[c] for c in CATEGORIES] == [4, 11, 7, 4]


@EVERY_TASK
def test_stages_horizon_and_crowding(task: Task) -> None:
    assert 3 <= task.stages <= 9
    assert 100 * task.stages < task.horizon <= 3000
    for variant in task.variants:
        assert len(variant.subtasks) == task.stages
        assert 1 <= len(set(task.objects) - set(variant.start)) <= 4 or variant.start.keys() == set(task.objects)


@EVERY_TASK
def test_the_hidden_state_changes_what_has_to_be_done(task: Task) -> None:
    """So a script that plays one variant's subtasks fails in all others. Either all of it is told, or nothing."""
    played = {tuple((s.skill, s.target, s.object) for s in variant.subtasks) for variant in task.variants}
    assert len(played) == len(task.variants)
    instructions = {variant.instruction for variant in task.variants}
    assert len(instructions) == (len(task.variants) if "(told)" in task.drawn else 1)
    assert bool(task.drawn) == (len(task.variants) > 1)


@EVERY_TASK
def test_variants_agree_in_what_depends_on_memory(task: Task) -> None:
    memory = [[subtask.memory for subtask in variant.subtasks] for variant in task.variants]
    assert all(other == memory[0] for other in memory)
    assert memory[0][0] is None, "at first there is nothing to remember"
    assert bool(task.remember) == any(memory[0])


@EVERY_TASK
def test_whatever_follows_a_first_pour_depends_on_counting(task: Task) -> None:
    for variant in task.variants:
        after_pour = False
        for subtask in variant.subtasks:
            pours = subtask.skill is Skill.POUR
            assert (subtask.memory == "counting") == (pours or after_pour), subtask.label
            after_pour = pours


@EVERY_TASK
def test_what_is_placed_is_picked_before_and_pours_are_counted_up(task: Task) -> None:
    for variant in task.variants:
        times = [s.done.times for s in variant.subtasks if isinstance(s.done, Poured)]
        assert times == list(range(1, len(times) + 1)) and len(times) in (0, 2)
        assert (variant.pour is not None) == (len(times) > 0)
        assert len({(s.object, s.target) for s in variant.subtasks if s.skill is Skill.POUR}) <= 1
        held = ""
        for subtask in variant.subtasks:
            if subtask.skill is Skill.MOVE:
                held = subtask.object
            elif subtask.object and not _search(task):
                assert held == subtask.object, subtask.label


def _search(task: Task) -> bool:
    """Tasks 4 and 5, as released, have no subtask that picks the butter."""
    return task.task_id in (4, 5)


@EVERY_TASK
def test_drawers_and_door_end_shut(task: Task) -> None:
    for variant in task.variants:
        last: dict[str, Subtask] = {s.target: s for s in variant.subtasks if s.skill in (Skill.OPEN, Skill.CLOSE)}
        assert all(subtask.skill is Skill.CLOSE for subtask in last.values())
        assert variant.lasting[-1] is not None, "the last subtask leaves something to check at the end"


def test_bottles_have_to_stand_where_they_are_put_down_after_a_pour() -> None:
    for task in TASKS:
        for variant in task.variants:
            for before, after in zip(variant.subtasks, variant.subtasks[1:], strict=False):
                if before.skill is Skill.POUR and after.skill is Skill.PLACE:
                    assert getattr(after.done, "upright", False), f"{task.name}: {after.label}"


def test_where_the_hidden_state_is_what_the_task_says() -> None:
    for variant, occupied in zip(task_of(4).variants, DRAWERS, strict=True):
        assert dict(variant.start) == {"cookies": occupied}
        assert {s.target for s in variant.subtasks[6:]} == {occupied}
    for variant, empty in zip(task_of(5).variants, DRAWERS, strict=True):
        assert set(variant.start.values()) == set(DRAWERS) - {empty}
        assert {s.target for s in variant.subtasks[6:]} == {empty}
    for task_id in (18, 19, 25, 26):
        for variant in task_of(task_id).variants:
            (source,), places = (
                set(variant.start.values()),
                {s.target for s in variant.subtasks if s.skill is Skill.PLACE},
            )
            assert places == set(task_of(task_id).fixtures) - {source}
    for task_id in (11, 14):
        pairs = {tuple(s.target for s in v.subtasks if s.skill is Skill.OPEN) for v in task_of(task_id).variants}
        assert len(pairs) == 6 and all(first != second for first, second in pairs)


def test_a_drawer_search_has_seven_of_nine_as_in_the_paper() -> None:
    assert memory_ratio((task_of(4),)) == memory_ratio((task_of(5),)) == (7, 9)


def test_memory_ratio_sums_over_the_released_labels() -> None:
    memory, total = memory_ratio(TASKS)
    assert total == sum(len(task["subtasks"]) for task in RELEASED) == 148
    assert memory == sum(s.memory is not None for task in TASKS for s in task.variants[0].subtasks)


def test_a_task_is_found_by_id_name_and_gymnasium_id() -> None:
    for task in TASKS:
        assert all(task_of(key) is task for key in (task.task_id, str(task.task_id), task.name, task.env_id))


@pytest.mark.parametrize("key", [0, 27, "", "Butter", "predimem/Arena-Butter-v0"])
def test_an_unknown_task_is_refused_with_all_that_there_are(key: int | str) -> None:
    with pytest.raises(ValueError, match=re.escape(f"unknown arena task {key!r}")) as raised:
        task_of(key)
    assert all(f"{task.task_id} {task.name}" in str(raised.value) for task in TASKS)


def test_one_short_file_for_each_task() -> None:
    files = sorted(Path(str(tasks.__file__)).parent.glob("t[0-9]*.py"))
    assert [int(path.name[1:3]) for path in files] == [task.task_id for task in TASKS]
    assert all(len(path.read_text().splitlines()) < 150 for path in files)


def test_the_page_in_the_docs_is_up_to_date() -> None:
    made = (ROOT / "docs" / "arena-tasks.md").read_text()
    assert made == page(), "make it afresh: python -m predimem.envs.arena.tasks > docs/arena-tasks.md"

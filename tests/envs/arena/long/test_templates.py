"""What the templates of the long tasks promise, without a simulator."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from planner.checkpoint import read_spec
from predimem.core.weight_files import weights_folder
from predimem.envs.arena.layout import draw_layout
from predimem.envs.arena.long.__main__ import table
from predimem.envs.arena.long.templates import COMPOSITIONS, TEMPLATES, Template, long_task, long_tasks
from predimem.envs.arena.subtasks import Skill
from predimem.envs.arena.task import Task
from predimem.envs.arena.tasks import TASKS, task_of
from predimem.envs.arena.visits import Carry, Pause, Slide, Visit, check_visits
from predimem.envs.arena.vocabulary import instructions, labels

ROOT = Path(__file__).parents[4]
MINUTE_STEPS = 60 * 20


@pytest.fixture(params=TEMPLATES, ids=lambda template: template.name)
def template(request: pytest.FixtureRequest) -> Template:
    return request.param


def task(template: Template) -> Task:
    return long_tasks()[template.number - 1]


def test_there_are_at_least_ten_and_each_is_called_by_its_name(template: Template) -> None:
    assert len(TEMPLATES) >= 10 and [t.number for t in TEMPLATES] == list(range(1, len(TEMPLATES) + 1))
    found = task(template)
    assert task_of(template.name) is task_of(found.env_id) is long_task(str(template.number)) is found
    assert found.name not in {known.name for known in TASKS}


def test_a_composition_follows_from_its_number(template: Template) -> None:
    again = replace(template)
    for index in (0, 7):
        one, other = template.composition(index), again.composition(index)
        assert (one.instruction, one.subtasks, one.start, one.pauses, one.visits) == (
            other.instruction, other.subtasks, other.start, other.pauses, other.visits
        )  # fmt: skip
    assert len({repr(variant) for variant in task(template).variants}) > COMPOSITIONS // 2


def test_the_seed_draws_a_composition(template: Template) -> None:
    drawn = [draw_layout(task(template), seed).variant for seed in range(40)]
    assert drawn == [draw_layout(task(template), seed).variant for seed in range(40)]
    assert len(set(drawn)) > 15


def test_stages_and_what_is_to_be_remembered(template: Template) -> None:
    found = task(template)
    for index, variant in enumerate(found.variants):
        assert 12 <= len(variant.subtasks) <= 20
        assert sum(subtask.memory is not None for subtask in variant.subtasks) >= 3
        assert len(set(template.remember(index))) >= 3
        assert found.horizon >= sum(variant.budgets_steps) >= MINUTE_STEPS + 100 * len(variant.subtasks)


def test_labels_are_those_that_the_shipped_planner_knows(template: Template) -> None:
    said = set(labels([task(template)]))
    assert said <= set(labels())
    assert said <= (read_spec(weights_folder(None, "arena-planner")).known_subtasks or set())


def test_hidden_things_differ_under_the_same_words() -> None:
    """For each template there are two compositions that start alike in words and part in what is to be done."""
    for found in long_tasks():
        by_words: dict[str, set[tuple[str, ...]]] = {}
        for variant in found.variants:
            words = " ".join(sorted(variant.instruction.replace(".", "").split()))
            by_words.setdefault(words, set()).add(tuple(sorted(s.label for s in variant.subtasks)))
        assert any(len(done) > 1 for done in by_words.values()), found.name


def test_the_pause_lasts_a_minute_and_comes_when_something_was_finished(template: Template) -> None:
    for variant in task(template).variants:
        (pause,) = variant.pauses
        assert pause.steps == MINUTE_STEPS and "wait for a minute" in variant.instruction
        assert variant.subtasks[pause.stage - 1].skill in (Skill.PLACE, Skill.CLOSE)


def test_somebody_comes_and_keeps_out_of_the_way(template: Template) -> None:
    moments = set()
    for variant in task(template).variants:
        assert any(isinstance(act, Slide) for visit in variant.visits for act in visit.acts)
        pauses = {pause.stage for pause in variant.pauses}
        for visit in variant.visits:
            moments.add((visit.stage, visit.delay_steps))
            first, last = (visit.stage - 1, visit.stage) if visit.stage in pauses else (visit.stage, visit.stage + 2)
            moved = {act.object if isinstance(act, Carry) else act.drawer for act in visit.acts}
            for subtask in variant.subtasks[first:last]:
                assert not moved & {subtask.object, subtask.target}, (subtask.label, visit)
            for act in visit.acts:
                if isinstance(act, Slide) and act.opening_m == 0.0:
                    assert visit.acts[0] == Slide(act.drawer, 0.18)
    assert len(moments) > 20


def test_instructions_name_what_is_picked_and_not_what_is_hidden(template: Template) -> None:
    for variant in task(template).variants:
        for subtask in variant.subtasks:
            if subtask.skill is Skill.MOVE:
                assert subtask.object.split("_")[0] in variant.instruction
        assert "_" not in variant.instruction
    assert not set(instructions([task(template)])) & set(instructions())


@pytest.mark.parametrize(
    ("pauses", "visits", "said"),
    [
        ((Pause(0, 10),), (), "a pause is before a stage from 1 to 3"),
        ((Pause(1, 0),), (), "has 1 step or more"),
        ((Pause(1, 5), Pause(1, 6)), (), "at most one pause before a stage"),
        ((), (Visit(4, 0, (Slide("top_drawer", 0.1),)),), "a stage from 0 to 3"),
        ((), (Visit(0, 0, ()),), "and acts"),
        ((), (Visit(0, 0, (Slide("fridge", 0.1),)),), "moves 'fridge'; there are: top_drawer"),
        ((), (Visit(0, 0, (Carry("milk", "table"),)),), "moves 'milk'; there are: butter"),
        ((), (Visit(0, 0, (Carry("butter", "moon"),)),), "takes butter to 'moon'; there are: table"),
    ],
)
def test_what_cannot_be_played_is_refused(pauses: tuple[Pause, ...], visits: tuple[Visit, ...], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        check_visits(pauses, visits, ("butter",), 4)


def test_unknown_long_tasks_are_refused_in_one_line() -> None:
    for wrong in ("long-99", "long-1", "99"):
        with pytest.raises(ValueError, match=r"unknown long task .* expected a number from 1 to 12 or a name") as error:
            long_task(wrong)
        assert "\n" not in str(error.value)


def test_the_table_of_the_guide_is_up_to_date() -> None:
    assert table() in (ROOT / "docs/guides/arena-long.md").read_text()

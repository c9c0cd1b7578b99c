"""What the memory-dependent stages draw on, against what the tasks say of themselves."""

from __future__ import annotations

import pytest

from predimem.envs.arena.tasks import TASKS, task_of


def evidence(task_id: int) -> dict[str, list[str]]:
    """Stage -> the stages that it draws on, of the task's first variant."""
    variant = task_of(task_id).variants[0]
    labels = [subtask.label for subtask in variant.subtasks]
    found = zip(labels, variant.evidence, strict=True)
    return {label: [labels[i] for i in stages] for label, stages in found if stages}


def test_a_drawer_is_opened_again_because_of_the_first_look() -> None:
    assert evidence(4) == {
        "open middle drawer": ["open top drawer"],
        "open bottom drawer": ["open top drawer", "open middle drawer"],
        "open top drawer again": ["open top drawer"],
        "place butter into top drawer": ["open top drawer"],
        "close top drawer final": ["place butter into top drawer"],
    }


def test_pours_are_counted() -> None:
    first, second = "pour wine into mug 1st: mug red", "pour wine into mug 2nd: mug red"
    assert evidence(10) == {second: [first], "place wine bottle on table": [first, second]}


def test_the_source_is_where_the_first_object_was() -> None:
    assert set(map(tuple, evidence(19).values())) == {("pick tomato sauce",)}


def test_the_microwave_hides_what_was_put_into_it() -> None:
    first, second = "place cookies: microwave left", "place chocolate: microwave left"
    assert evidence(20) == {"pick chocolate": [first], second: [first], "close microwave": [first, second]}


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
def test_only_memory_has_evidence_and_it_lies_before(task: object) -> None:
    for variant in task.variants:  # type: ignore[attr-defined]
        for index, (subtask, stages) in enumerate(zip(variant.subtasks, variant.evidence, strict=True)):
            assert subtask.memory or not stages
            assert all(0 <= stage < index for stage in stages)


def test_budgets_add_up_to_the_horizon() -> None:
    assert task_of(10).budgets_steps == (140, 320, 320, 240) and task_of(10).horizon == 1020

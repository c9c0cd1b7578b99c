import pytest

from datagen.decompose.rules import decompose
from datagen.decompose.vocabulary import vocabulary_of
from datagen.demos.recorder import spans_of
from datagen.demos.task_labels import DisagreementError, subtask_of_each
from predimem.envs.arena.tasks import TASKS, task_of


def test_every_variant_of_every_task_gets_all_its_labels_in_order() -> None:
    for task in TASKS:
        for variant in task.variants:
            steps = decompose(variant.instruction, vocabulary_of(task))
            indices = subtask_of_each(steps, variant)
            assert len(indices) == len(steps)
            assert sorted(set(indices)) == list(range(task.stages)) and indices == sorted(indices), task.name


def test_a_place_that_picks_its_object_itself_has_two_steps() -> None:
    task = task_of(4)
    steps = decompose(task.variants[0].instruction, vocabulary_of(task))
    assert subtask_of_each(steps, task.variants[0]) == [0, 1, 2, 3, 4, 5, 6, 7, 7, 8]


def test_other_steps_get_no_labels() -> None:
    task = task_of(18)
    steps = decompose(task.variants[0].instruction, vocabulary_of(task))
    with pytest.raises(DisagreementError, match="2 steps that are not the 4 subtasks"):
        subtask_of_each(steps[:2], task.variants[0])
    with pytest.raises(DisagreementError):
        subtask_of_each(steps, task_of(4).variants[0])


def test_runs_of_equal_values() -> None:
    assert spans_of([0, 0, 1, 1, 1, 0]) == [(0, 2, 0), (2, 5, 1), (5, 6, 0)]

"""What the labels of the 26 tasks stand for."""

from datagen.arena.tasks import TASKS, task_of
from datagen.skills.named import named, spoken_label


def test_every_label_means_the_subtask_of_the_true_variant() -> None:
    for task in TASKS:
        for variant in task.variants:
            for subtask in variant.subtasks:
                assert named(task, variant, subtask.label) == subtask


def test_a_label_with_its_target_means_that_target_whatever_is_true() -> None:
    for task in TASKS:
        for true in task.variants:
            for subtask in (s for variant in task.variants for s in variant.subtasks):
                found = named(task, true, spoken_label(task, subtask))
                assert found is not None
                assert (found.label, found.skill, found.target) == (subtask.label, subtask.skill, subtask.target)


def test_only_what_is_open_is_said() -> None:
    first, second = (variant.subtasks for variant in task_of(1).variants)
    assert spoken_label(task_of(1), first[1]) == "place cookies into basket: basket left"
    assert spoken_label(task_of(1), second[1]) == "place cookies into basket: basket right"
    assert spoken_label(task_of(1), first[0]) == "pick cookies"


def test_other_variants_count_and_unknown_labels_do_not() -> None:
    task = task_of(4)
    wrong = named(task, task.variants[0], "  Open middle drawer AGAIN ")
    assert wrong is not None and wrong.target == "middle_drawer"
    assert named(task, task.variants[0], "open the fridge") is None
    assert named(task, task.variants[0], "") is None

"""What the labels of the 26 tasks stand for."""

from datagen.experts.scripted.subtask_names import named
from predimem.core.subtask_labels import released
from predimem.core.types import AmbiguousLabel
from predimem.envs.arena.subtasks import Motion, Subtask
from predimem.envs.arena.task import Task
from predimem.envs.arena.tasks import TASKS, task_of


def everywhere(task: Task) -> list[Subtask]:
    return [subtask for variant in task.variants for subtask in variant.subtasks]


def played(found: Subtask | AmbiguousLabel | None) -> Motion:
    assert isinstance(found, Subtask)
    return found.motion


def test_a_label_means_its_target_whatever_is_true() -> None:
    for task in TASKS:
        for true in task.variants:
            for subtask in everywhere(task):
                found = named(task, true, subtask.label)
                assert played(found) == played(subtask) and isinstance(found, Subtask) and found.label == subtask.label


def test_the_label_of_the_true_variant_is_its_own_subtask() -> None:
    """What the oracle planner says, and what demonstrations are labelled with."""
    for task in TASKS:
        for variant in task.variants:
            for subtask in variant.subtasks:
                assert named(task, variant, subtask.label) == subtask


def test_words_without_the_target_are_refused_whatever_is_true() -> None:
    refused = 0
    for task in TASKS:
        for variant in task.variants:
            for subtask in variant.subtasks:
                found = named(task, variant, released(subtask.label))
                if released(subtask.label) == subtask.label:
                    assert found == subtask
                else:
                    assert isinstance(found, AmbiguousLabel)
                    assert subtask.label in found.clear and len(found.meanings) > 1
                    refused += 1
    assert refused > 50


def test_only_what_is_open_is_said() -> None:
    first, second = (variant.subtasks for variant in task_of(1).variants)
    assert first[1].label == "place cookies into basket: basket left"
    assert second[1].label == "place cookies into basket: basket right"
    assert first[0].label == "pick cookies"
    assert not any(":" in subtask.label for subtask in everywhere(task_of(4)))


def test_tasks_with_equal_instructions_understand_each_other() -> None:
    """11 and 14: "place cookies: top drawer" and "place cookies in top drawer"."""
    for task, other in ((task_of(11), task_of(14)), (task_of(14), task_of(11))):
        for variant in other.variants:
            for subtask in variant.subtasks:
                assert played(named(task, task.variants[0], subtask.label)) == played(subtask)


def test_other_variants_count_and_unknown_labels_do_not() -> None:
    task = task_of(4)
    wrong = named(task, task.variants[0], "  Open middle drawer AGAIN ")
    assert isinstance(wrong, Subtask) and wrong.target == "middle_drawer"
    assert named(task, task.variants[0], "open the fridge") is None
    assert named(task, task.variants[0], "") is None

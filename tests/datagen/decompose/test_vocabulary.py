"""The vocabularies of all tasks, and what references mean."""

from __future__ import annotations

import re

import pytest

from datagen.decompose.references import agrees, expected_steps, resolve, resolve_steps
from datagen.decompose.rules import decompose
from datagen.decompose.vocabulary import ROLE_OF, Role, Target, Vocabulary, vocabulary_of
from predimem.envs.arena.subtasks import pick, place
from predimem.envs.arena.task import Task, Variant
from predimem.envs.arena.tasks import TASKS, task_of

OBJECT, PLACE, JOINT = (frozenset({role}) for role in (Role.OBJECT, Role.PLACE, Role.JOINT))


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
def test_every_subtask_can_be_named(task: Task) -> None:
    vocabulary = vocabulary_of(task)
    for variant in task.variants:
        for skill, name in expected_steps(variant.subtasks):
            target = vocabulary.find(name)
            assert target and ROLE_OF[skill] in target.roles, name


@pytest.mark.parametrize(
    ("task", "reference", "places"),
    [
        (1, "marked_basket", ["basket_left", "basket_right"]),
        (4, "occupied_drawer", ["top_drawer", "middle_drawer", "bottom_drawer"]),
        (5, "empty_drawer", ["top_drawer", "middle_drawer", "bottom_drawer"]),
        (12, "marked_half", ["middle_drawer_left", "middle_drawer_right"]),
        (20, "marked_half", ["microwave_left", "microwave_right"]),
        (18, "other_shelf", ["shelf_right", "shelf_left"]),
        (25, "other_plate", ["plate_right", "plate_left"]),
    ],
)
def test_what_references_mean(task: int, reference: str, places: list[str]) -> None:
    found = vocabulary_of(task_of(task)).find(reference)
    assert found and set(found.candidates) == set(places)
    assert [resolve(reference, variant) for variant in task_of(task).variants] == places


def test_only_references_that_mean_one_place_are_offered() -> None:
    references = {t.task_id: [x.name for x in vocabulary_of(t).targets if x.candidates] for t in TASKS}
    assert [task for task in references if not references[task]] == [6, 7, 8, 9, 10, 11, 14, 15, 16]
    assert all(len(names) <= 1 for names in references.values())
    assert resolve("empty_drawer", task_of(4).variants[0]) is None  # two are
    with pytest.raises(ValueError, match="unknown reference 'x': there are occupied_drawer"):
        resolve("x", task_of(4).variants[0])


def test_steps_that_name_the_place_itself_agree_only_with_its_variant() -> None:
    left, right = task_of(1).variants
    steps = resolve_steps(decompose(left.instruction, vocabulary_of(task_of(1))), left)
    assert [step.target for step in steps] == ["cookies", "basket_left", "tomato_sauce", "basket_left"]
    assert agrees(steps, left) and not agrees(steps, right)
    assert not agrees(steps[:-1], left)


def test_a_reference_of_another_scene_is_refused() -> None:
    steps = decompose(task_of(1).variants[0].instruction, vocabulary_of(task_of(1)))
    with pytest.raises(ValueError, match="'marked_basket' does not mean exactly one place"):
        resolve_steps(steps, task_of(4).variants[0])


def test_a_scene_of_ones_own() -> None:
    scene = Vocabulary(
        (
            Target("spoon", OBJECT, ("spoon",)),
            Target("cupboard", JOINT, ("cupboard",)),
            Target("cupboard_shelf", PLACE, ("cupboard shelf",), behind="cupboard"),
        )
    )
    steps = decompose("Kindly lay the spoon on the cupboard shelf and shut the cupboard.", scene)
    assert [f"{s.planner} {s.target}" for s in steps] == [
        "Open cupboard", "Move spoon", "Place cupboard_shelf", "Close cupboard",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("targets", "message"),
    [
        ([Target("a", PLACE, ("a",)), Target("a", OBJECT, ("b",))], "different names; got a, a"),
        ([Target("a", PLACE, ("a",), behind="b")], "'a' is behind 'b', which is no joint"),
        ([Target("a", PLACE, ("a",), candidates=("b",))], "reference 'a' may be ['b']"),
        ([Target("a", PLACE, ())], "'a' needs at least one role and one name"),
    ],
)
def test_vocabularies_that_do_not_fit(targets: list[Target], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        Vocabulary(tuple(targets))


def test_a_scene_with_one_of_two_places_has_no_reference_to_the_other() -> None:
    subtasks = (pick("pick", "butter"), place("put", "butter", "table"))
    start = Variant("Put the butter on the table.", subtasks, {"butter": "plate_left"})
    task = Task(101, "OnePlate", "One Plate", "transferring", ("butter",), (start,), ("plate_left",))
    assert "other_plate" not in [target.name for target in vocabulary_of(task).targets]

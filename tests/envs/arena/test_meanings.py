"""What a label can mean in a task."""

from pathlib import Path

import pytest

from predimem.envs.arena.meanings import ambiguous_labels, as_markdown, meanings, refusal
from predimem.envs.arena.subtasks import place
from predimem.envs.arena.task import Task, Variant
from predimem.envs.arena.tasks import TASKS, task_of
from predimem.envs.arena.vocabulary import labels

ROOT = Path(__file__).parents[3]


def test_a_label_without_its_target_means_each_of_them_and_one_with_it_that_one() -> None:
    variants = task_of(10).variants
    assert [s.target for s in meanings("pour wine into mug 1st", variants)] == ["mug_red", "mug_white"]
    assert [s.target for s in meanings("Pour wine in mug 1st: mug WHITE", variants)] == ["mug_white"]
    assert [s.label for s in meanings("pick wine bottle", variants)] == ["pick wine bottle"]
    assert meanings("pour wine into mug", variants) == meanings("", variants) == ()


def test_the_variant_that_comes_first_gives_the_subtask() -> None:
    """Whose stage it is: in task 4 every variant opens the top drawer, but for another reason."""
    for variant in task_of(4).variants:
        for subtask in variant.subtasks:
            assert meanings(subtask.label, (variant, *task_of(4).variants)) == (subtask,)


def test_a_refusal_says_what_could_be_meant_in_an_order_that_does_not_tell_the_truth() -> None:
    first, second = task_of(18).variants
    label = "place butter cabinet2"
    told = [refusal(label, meanings(label, variants)) for variants in ((first, second), (second, first))]
    assert told[0] == told[1]
    assert str(told[0]) == (
        "'place butter cabinet2' is ambiguous, it could mean: place butter at shelf left; place butter at shelf right. "
        "Say 'place butter cabinet2: shelf left' or 'place butter cabinet2: shelf right'"
    )


def test_the_docs_list_what_is_ambiguous_in_the_vocabulary() -> None:
    found = ambiguous_labels(labels())
    assert ("place chocolate", 11) in {(refused.label, task.task_id) for task, refused in found}
    assert as_markdown(found) in (ROOT / "docs" / "guides" / "arena.md").read_text(), (
        "make it afresh: python -m predimem.envs.arena.meanings"
    )


def test_no_label_is_ambiguous_in_its_own_task() -> None:
    """So the oracle planner, which says these, is never refused."""
    for task in TASKS:
        assert ambiguous_labels(labels([task]), [task]) == []


def test_a_task_whose_label_would_be_ambiguous_even_with_its_target_is_faulty() -> None:
    def made(*moved: tuple[str, str]) -> Task:
        variants = tuple(Variant("Tidy up.", (place("put it away", thing, to),)) for thing, to in moved)
        return Task(101, "Away", "Away", "sequence", ("butter", "cookies"), variants, ("drainer", "frying_pan"))

    told = made(("butter", "drainer"), ("cookies", "frying_pan"))
    assert labels([told]) == ["put it away: drainer", "put it away: frying pan"]
    with pytest.raises(ValueError, match="'put it away' means Place 'butter' and Place 'cookies' with the same target"):
        made(("butter", "drainer"), ("cookies", "drainer"))

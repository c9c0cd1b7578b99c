"""The 100 paraphrases: all tasks have some, and no two sentences that a robot may be told are the same."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from predimem.core.paraphrases import read_paraphrases
from predimem.envs.arena.tasks import TASKS, task_of
from predimem.envs.arena.unseen.conditions import draw_setting
from predimem.envs.arena.unseen.instructions import all_paraphrases

ROOT = Path(__file__).parents[4]
TRAINED = ROOT / "configs/paraphrases/arena.yaml"
OTHER_WORDS = (*(ROOT / f"tests/datagen/decompose/{name}.json" for name in ("paraphrases", "own_words")),)


def letters(text: str) -> str:
    return re.sub(r"[^a-z]", "", text.lower())


def test_there_are_100_for_all_tasks() -> None:
    assert list(all_paraphrases()) == [task.name for task in TASKS]
    counts = {name: len(entry.paraphrases) for name, entry in all_paraphrases().items()}
    assert sum(counts.values()) == 100 and min(counts.values()) == 3


def test_none_is_an_instruction_or_another_one() -> None:
    told = Counter(
        letters(text)
        for task in TASKS
        for instruction in {variant.instruction for variant in task.variants}
        for text in all_paraphrases()[task.name].of(instruction)
    )
    assert len(told) == 139 and set(told.values()) == {1}  # with the words that variants differ in
    assert not told.keys() & {letters(variant.instruction) for task in TASKS for variant in task.variants}
    others = [case["instruction"] for path in OTHER_WORDS for case in json.loads(path.read_text())]
    others += (ROOT / "benchmarks/prompts/paraphrased.txt").read_text().splitlines()
    assert len(others) > 150 and not told.keys() & set(map(letters, others))


# What an instruction must say: how often, which drawer, which mug, what with what.
DECIDING = {
    "top": ("top",), "middle": ("middle",), "bottom": ("bottom",), "red": ("red",), "white": ("white",),
    "empty": ("empty", "nothing", "something", "occupied", "vacant"), "drainer": ("drainer",), "plate": ("plate",),
    "twice": ("twice", "two times", "two pours", "both", "once more", "second time", "again", "one more time"),
    "basket": ("basket",), "microwave": ("microwave",), "shelf": ("shelf",), "mat": ("mat",), "pan": ("frying pan",),
    "sauce": ("tomato sauce",), "milk": ("milk",), "wine": ("wine",), "cookies": ("cookies",), "butter": ("butter",),
    "popcorn": ("popcorn",), "cream": ("cream cheese",), "chocolate": ("chocolate pudding",),
    "juice": ("orange juice",),
}  # fmt: skip


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
def test_they_name_the_same_things_and_no_others(task) -> None:
    for instruction in {variant.instruction for variant in task.variants}:
        words = set(re.findall(r"\w+", instruction.lower()))
        for text in all_paraphrases()[task.name].of(instruction):
            lower = text.lower()
            assert "{" not in text
            for word, ways in DECIDING.items():
                named = any(re.search(rf"\b{way}s?\b", lower) for way in ways)
                wanted = word in words or (word == "basket" and "baskets" in words)
                if wanted or word not in ("twice", "empty"):  # "again" and "nothing" are also said of other things
                    assert named == wanted, f"{word}: {text}"


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
def test_things_are_named_in_the_order_of_the_instruction(task) -> None:
    """Where two things are moved one after the other, the paraphrase first names the one that comes first."""
    things = ("cookies", "butter", "cream cheese", "chocolate pudding", "popcorn", "tomato sauce", "orange juice")
    for instruction in {variant.instruction for variant in task.variants}:
        order = [thing for thing in things if thing in instruction]
        order.sort(key=instruction.index)
        pours = "pour" in instruction.lower()
        for text in () if pours else all_paraphrases()[task.name].of(instruction):
            assert sorted(order, key=text.lower().index) == order, text


def test_variants_keep_their_words() -> None:
    task = task_of(11)
    variant = next(
        v for v in task.variants if "cookies into the bottom" in v.instruction and "the top" in v.instruction
    )
    for text in all_paraphrases()[task.name].of(variant.instruction):
        assert text.index("bottom drawer") < text.index("top drawer") and "middle" not in text


def test_a_seed_draws_one_of_the_own_task() -> None:
    task = task_of(10)
    told = set()
    for seed in range(900_000, 900_030):
        setting = draw_setting(task, seed, "instructions")
        assert setting.instruction in all_paraphrases()[task.name].of(task.variants[setting.layout.variant].instruction)
        told.add(setting.instruction)
    assert len(told) == 8  # 4 with each mug


def test_tasks_that_say_something_else_are_refused() -> None:
    with pytest.raises(ValueError, match="a task whose instruction was changed needs new ones"):
        all_paraphrases()["ButterInEmptyDrawer"].of("Put the butter away.")
    with pytest.raises(ValueError, match=r"no paraphrases of MyTask"):
        draw_setting(replace(task_of(4), name="MyTask", task_id=99), 0, "instructions")


def test_those_for_training_are_others() -> None:
    """Of every task and variant, and no sentence that an evaluation uses."""
    for task in TASKS:
        evaluated, trained = all_paraphrases()[task.name], read_paraphrases(TRAINED)[task.name]
        assert trained.original == evaluated.original and len(trained.paraphrases) == 12
        for instruction in {variant.instruction for variant in task.variants}:
            told = set(map(letters, trained.of(instruction)))
            assert len(told) == 12 and not told & {letters(instruction), *map(letters, evaluated.of(instruction))}

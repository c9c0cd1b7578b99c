"""The histories of the benchmark: what a seed draws, and what it means that a session is relevant."""

from __future__ import annotations

from collections import Counter

import pytest

from predimem.envs.benchmark import load_benchmark
from predimem.envs.interference.conditions import CONDITIONS, condition_of, draw
from predimem.envs.interference.families import FAMILIES

SEEDS = range(900_000, 900_040)


def drawn(family: str, condition: str, seed: int, pool: int = 4):
    return draw(FAMILIES[family], condition_of(condition), seed, pool)


def test_there_are_six_families_and_more_and_all_values_are_drawn():
    assert len(FAMILIES) == 7
    for name, family in FAMILIES.items():
        values = Counter(drawn(name, "k0", seed).value for seed in SEEDS)
        assert set(values) == set(range(family.values)), name
        assert len(set(family.answers)) == family.values == round(1 / family.chance)
    answers = [answer for family in FAMILIES.values() for answer in family.answers]
    assert len(set(answers)) == len(answers)


def test_an_instruction_does_not_tell_the_value():
    for family in FAMILIES.values():
        for tasks in (family.lessons, family.tests):
            assert len({variant.instruction for task in tasks for variant in task.variants}) == 1, family.name


def test_unrelated_distractors_come_after_the_lesson_and_the_rest_stays():
    for seed in SEEDS:
        few, many = drawn("drawer", "k3", seed), drawn("drawer", "k31", seed)
        assert (few.value, few.test_seed, few.person) == (many.value, many.test_seed, many.person)
        assert [s.relevant for s in many.sessions] == [True] + [False] * 31
        assert many.sessions[0].value == many.value
        assert all(s.family != "drawer" for s in many.sessions[1:])
        same = [(s.family, s.value, s.number) for s in few.sessions]
        assert same == [(s.family, s.value, s.number) for s in many.sessions[:4]]
        ages = [s.age_s for s in many.sessions]
        assert ages == sorted(ages, reverse=True) and ages[-1] > 3600


def test_without_a_lesson_nothing_is_relevant():
    assert drawn("drawer", "no-history", 900_000).sessions == ()
    absent = drawn("drawer", "k7-absent", 900_000).sessions
    assert len(absent) == 7 and not any(s.relevant or s.family == "drawer" for s in absent)


@pytest.mark.parametrize("kind", ["older", "newer", "others"])
def test_contradicting_sessions_are_of_the_same_family(kind: str):
    for name in ("drawer", "plate"):
        for seed in SEEDS:
            episode = drawn(name, f"k3-{kind}", seed)
            assert len(episode.sessions) == 4 and {s.family for s in episode.sessions} == {name}
            (relevant,) = [s for s in episode.sessions if s.relevant]
            assert relevant.value == episode.value and (relevant.robot, relevant.person) == (
                episode.robot,
                episode.person,
            )
            mine = [s for s in episode.sessions if (s.robot, s.person) == (episode.robot, episode.person)]
            assert mine[-1] is relevant  # the newest valid one counts
            rest = [s for s in episode.sessions if s is not relevant]
            if kind == "newer":
                assert episode.sessions[-1] is relevant and rest[0].value != relevant.value
            else:
                assert all(s.value != relevant.value for s in rest)
            assert (kind == "others") == (mine == [relevant])


def test_conditions_and_tasks_have_names():
    benchmark = load_benchmark("interference")
    assert set(benchmark.all_tasks()) == {f"{family}-{c}" for family in FAMILIES for c in CONDITIONS}
    assert benchmark.in_conditions(("drawer",), ("k0", "k7")) == ("drawer-k0", "drawer-k7")
    assert len(benchmark.in_conditions((), ("k63", "k7-newer"))) == 14
    assert benchmark.task_name("drawer-no-history") == "drawer-no-history"
    assert benchmark.describe("plate-k3") == "which plate is the guest's; 3 unrelated sessions after the lesson"
    assert benchmark.subtasks("pours-k0") == ("pour once", "pour twice", "pour three times")
    assert benchmark.categories(["drawer-k7", "mug-k7", "mug-k0"]) == {"k7": ["drawer-k7", "mug-k7"], "k0": ["mug-k0"]}
    for wrong in ("drawer", "drawer-k", "drawer-k7-strange", "draver-k7", "drawer-k0-older"):
        with pytest.raises(ValueError, match="unknown"):
            benchmark.task_name(wrong)
    with pytest.raises(ValueError, match="have no conditions"):
        load_benchmark("base").in_conditions((), ("k0",))

"""What a task remembers: the order of stages, exact counting, what was undone, and failures."""

from __future__ import annotations

import pytest
import torch

from predimem.envs.arena.fixtures import DRAWERS
from predimem.envs.arena.predicates import POUR_STEPS
from predimem.envs.arena.progress import FAILURES, Progress
from predimem.envs.arena.task import Task
from predimem.envs.arena.tasks import task_of
from tests.envs.arena.worlds import Scene

EARLY_OR_THIRD, LOST = 1, 2


class Played:
    """A task in N worlds that are moved by hand."""

    def __init__(self, task: Task | int, variants: list[int]):
        self.task = task if isinstance(task, Task) else task_of(task)
        self.progress = Progress.fresh(len(variants))
        self.progress.reset(torch.arange(len(variants)), torch.tensor(variants))
        self.scene = Scene(self.task, len(variants))

    def step(self, steps: int = 1) -> list[int]:
        for _ in range(steps):
            self.progress.advance(self.task, self.scene.world(self.progress.pours))
        return self.progress.stage.tolist()

    def standing(self, i: int = 0) -> list[bool]:
        return self.progress.stages(self.task, self.scene.world(self.progress.pours))[i].tolist()

    def pour(self, i: int, name: str, target: str, steps: int = POUR_STEPS) -> None:
        """Tilt it over the target for that long, then turn it upright, in world i."""
        self.scene.tilt(i, name, target, 100.0)
        self.step(steps)
        self.scene.tilt(i, name, target, 0.0)
        self.step()

    @property
    def pours(self) -> list[int]:
        return self.progress.pours.tolist()

    @property
    def failures(self) -> list[int]:
        return self.progress.failure.tolist()


# ---- the order of stages


def test_nothing_passes_by_itself() -> None:
    played = Played(20, [0, 1])
    assert played.step(50) == [0, 0]
    assert played.failures == [0, 0]


def test_stages_pass_in_order_and_one_at_a_time() -> None:
    played = Played(1, [0, 0])
    played.scene.put(0, "cookies", "basket_left")  # stage 2 holds before stage 1 did
    assert played.step(3) == [0, 0]
    played.scene.hold(0, "cookies")
    assert played.step() == [1, 0]
    played.scene.put(0, "cookies", "basket_left")
    assert played.step() == [2, 0]
    assert played.step(5) == [2, 0]
    played.scene.hold(0, "tomato_sauce")
    assert played.step() == [3, 0]
    played.scene.put(0, "tomato_sauce", "basket_left")
    assert played.step(2) == [4, 0]
    assert played.standing(0) == [True] * 4
    assert played.standing(1) == [False] * 4


@pytest.mark.parametrize("k", [1, 3, 5])
def test_a_stage_goes_on_by_one_where_a_neighbour_is_at_the_next(k: int) -> None:
    """Task 4, closing one drawer and opening the next: both hold in both worlds, and each passes one."""
    played = Played(4, [0, 0])
    played.progress.stage[:] = torch.tensor([k, k + 1])
    for i in (0, 1):
        played.scene.joint(i, (*DRAWERS, DRAWERS[0])[(k + 1) // 2], 0.17)
    assert played.step() == [k + 1, k + 2]


def test_worlds_with_different_hidden_states_pass_on_their_own_condition() -> None:
    """Task 1 in both variants: into the left basket in both worlds, which is right in one."""
    played = Played(1, [0, 1])
    for i in (0, 1):
        played.scene.hold(i, "cookies")
    assert played.step() == [1, 1]
    for i in (0, 1):
        played.scene.put(i, "cookies", "basket_left")
    assert played.step() == [2, 1]
    played.scene.put(1, "cookies", "basket_right")
    assert played.step() == [2, 2]


@pytest.mark.parametrize(("variant", "drawer"), enumerate(DRAWERS))
def test_the_drawer_that_counts_is_the_occupied_one(variant: int, drawer: str) -> None:
    played = Played(4, [variant])
    for searched in DRAWERS:
        played.scene.joint(0, searched, 0.17)
        played.step()
        played.scene.joint(0, searched, 0.0)
        played.step()
    assert played.step() == [6]
    for wrong in DRAWERS:
        if wrong != drawer:
            played.scene.joint(0, wrong, 0.17)
            assert played.step() == [6]
            played.scene.joint(0, wrong, 0.0)
    played.scene.joint(0, drawer, 0.17)
    assert played.step() == [7]
    played.scene.put(0, "butter", drawer)
    assert played.step() == [8]
    assert all(played.standing()[:8]), "that it was opened again does not undo that it was closed"
    played.scene.joint(0, drawer, 0.0)
    assert played.step() == [9]
    assert played.standing() == [True] * 9


# ---- lasting stages


def test_a_stage_that_is_undone_stands_again_when_it_is_mended() -> None:
    played = Played(1, [0])
    for name in ("cookies", "tomato_sauce"):
        played.scene.hold(0, name)
        played.step()
        played.scene.put(0, name, "basket_left")
        played.step()
    assert played.standing() == [True] * 4
    played.scene.put(0, "cookies", "basket_right")
    assert played.step() == [4], "what was passed stays passed"
    assert played.standing() == [True, False, True, True]
    played.scene.put(0, "cookies", "basket_left")
    assert played.standing() == [True] * 4


def test_what_lasts_is_each_worlds_own() -> None:
    """Task 1 in both variants: in world 1 everything belongs into the right basket."""
    played = Played(1, [0, 1])
    played.progress.stage[:] = 4
    for i, basket in enumerate(("basket_left", "basket_right")):
        for name in ("cookies", "tomato_sauce"):
            played.scene.put(i, name, basket)
    assert played.standing(0) == played.standing(1) == [True] * 4
    played.scene.put(1, "tomato_sauce", "basket_left")
    assert played.standing(0) == [True] * 4
    assert played.standing(1) == [True, True, True, False]


def test_a_drawer_left_open_undoes_its_closing() -> None:
    played = Played(4, [2])  # the bottom drawer is opened again, the top drawer is not
    played.progress.stage[:] = 9
    played.scene.put(0, "butter", "bottom_drawer")
    assert played.standing() == [True] * 9
    played.scene.joint(0, "top_drawer", 0.05)
    assert [k for k, stands in enumerate(played.standing()) if not stands] == [1]
    played.scene.joint(0, "bottom_drawer", 0.05)
    assert [k for k, stands in enumerate(played.standing()) if not stands] == [1, 8]


# ---- counting


def at_pouring(variants: list[int]) -> Played:
    """Task 10 (red mug, white mug), with the bottle in the gripper."""
    played = Played(10, variants)
    for i in range(len(variants)):
        played.scene.hold(i, "wine_bottle")
    assert played.step() == [1] * len(variants)
    return played


def test_two_pours_and_the_bottle_put_back() -> None:
    played = at_pouring([0])
    played.pour(0, "wine_bottle", "mug_red")
    assert (played.pours, played.step()) == ([1], [2])
    played.pour(0, "wine_bottle", "mug_red")
    assert (played.pours, played.step()) == ([2], [3])
    played.scene.put(0, "wine_bottle", "table")
    assert played.step() == [4]
    assert played.failures == [0]


def test_a_pour_is_no_stage_before_the_bottle_is_upright() -> None:
    played = at_pouring([0])
    played.scene.tilt(0, "wine_bottle", "mug_red", 100.0)
    assert played.step(POUR_STEPS) == [1]
    assert played.pours == [1]
    played.scene.tilt(0, "wine_bottle", "mug_red", 31.0)
    assert played.step(5) == [1]
    played.scene.tilt(0, "wine_bottle", "mug_red", 29.0)
    assert played.step() == [2]


def test_a_third_pour_fails() -> None:
    played = at_pouring([0, 0])
    for _ in range(2):
        for i in (0, 1):
            played.pour(i, "wine_bottle", "mug_red")
    played.pour(0, "wine_bottle", "mug_red", steps=POUR_STEPS - 1)
    assert played.failures == [0, 0]
    played.pour(0, "wine_bottle", "mug_red")
    assert played.failures == [EARLY_OR_THIRD, 0]
    assert FAILURES[EARLY_OR_THIRD] == "a pour that was not due"


def test_an_early_pour_fails() -> None:
    """Task 8: the chocolate goes into the pan first."""
    played = Played(8, [0, 0])
    played.scene.hold(0, "tomato_sauce")
    played.pour(0, "tomato_sauce", "frying_pan")
    assert played.failures == [EARLY_OR_THIRD, 0]


@pytest.mark.parametrize(("steps", "pours"), [(9, 0), (10, 1), (60, 1)])
def test_a_pour_takes_ten_steps_and_is_one_pour_however_long(steps: int, pours: int) -> None:
    played = at_pouring([0, 0])
    played.pour(0, "wine_bottle", "mug_red", steps)
    assert played.pours == [pours, 0]
    assert played.step() == [1 + pours, 1]
    assert played.failures == [0, 0]


def test_the_ten_steps_are_without_a_break() -> None:
    played = at_pouring([0])
    for degrees in (100.0, 74.0, 100.0, 50.0, 100.0):
        played.scene.tilt(0, "wine_bottle", "mug_red", degrees)
        played.step(POUR_STEPS - 1 if degrees == 100.0 else 1)
    assert played.pours == [0]


def test_a_new_pour_begins_only_after_the_bottle_was_upright() -> None:
    played = at_pouring([0, 0])
    for between, pours in ((31.0, 1), (29.0, 2)):
        for degrees in (100.0, between, 100.0):
            played.scene.tilt(0, "wine_bottle", "mug_red", degrees)
            played.step(1 if degrees == between else POUR_STEPS)
        assert played.pours == [pours, 0]
    assert played.failures == [0, 0]


def test_each_world_counts_on_its_own_mug() -> None:
    played = at_pouring([0, 1])
    for i in (0, 1):
        played.scene.tilt(i, "wine_bottle", "mug_white", 100.0)
    played.step(POUR_STEPS)
    assert played.pours == [0, 1]
    for i in (0, 1):
        played.scene.tilt(i, "wine_bottle", "mug_red", 100.0)
    played.step(POUR_STEPS)
    assert played.pours == [1, 1]
    assert played.failures == [0, 0]


# ---- failures and resets


def test_an_object_that_fell_off_the_table_is_lost_also_one_that_is_not_needed() -> None:
    played = Played(1, [0, 0, 0])
    played.scene.drop(0, "cookies", -0.099)
    played.scene.drop(1, "cookies", -0.101)
    played.scene.drop(2, "butter", -0.101)
    played.step()
    assert played.failures == [0, LOST, LOST]
    assert FAILURES[LOST] == "an object fell off the table"


def test_the_first_failure_is_the_one_that_is_told() -> None:
    played = Played(8, [0, 0])  # the pour comes before the chocolate: too early
    played.pour(0, "tomato_sauce", "frying_pan")
    for i in (0, 1):
        played.scene.drop(i, "milk", -0.2)
    played.step()
    assert played.failures == [EARLY_OR_THIRD, LOST]
    played.pour(1, "tomato_sauce", "frying_pan")
    assert played.pours == [1, 1]
    assert played.failures == [EARLY_OR_THIRD, LOST]


def test_reset_of_one_world_leaves_the_others_alone() -> None:
    played = at_pouring([0, 1, 1])
    for i, mug in enumerate(("mug_red", "mug_white", "mug_white")):
        played.scene.tilt(i, "wine_bottle", mug, 100.0)
    played.step(POUR_STEPS)
    played.progress.clipped += 3
    before = {name: value.clone() for name, value in vars(played.progress).items()}
    played.progress.reset(torch.tensor([1]), torch.tensor([0]))
    for name, value in vars(played.progress).items():
        assert value.tolist() == [before[name][0], 0, before[name][2]], name
    assert before["tilt_steps"].tolist() == [POUR_STEPS] * 3 and before["tilted"].tolist() == [1, 1, 1]

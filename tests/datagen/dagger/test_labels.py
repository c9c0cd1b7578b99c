"""Which subtask is right, while somebody else's is carried out."""

from collections.abc import Callable

import numpy as np
import pytest

from datagen.dagger.labels import RightSubtask
from datagen.experts.memoryless.policy import ReactiveActor
from datagen.experts.scripted.drawer import PULLED_M
from datagen.experts.scripted.policy import SkillActor
from predimem.core.types import Observation
from tests.datagen.experts import arena

OPEN, CLOSE = "open top drawer", "close the top drawer"


class Practice:
    """An episode whose hand does what it is told; `right` is told at every step."""

    def __init__(self, task: int, hand: type[SkillActor] | type[ReactiveActor] = SkillActor):
        self.env = arena(task, 0)
        self.actor = hand(self.env)
        self.right = RightSubtask(self.env, self.actor)
        self.labels = [subtask.label for subtask in self.env.variant().subtasks]
        self.steps, self.seen = 0, [""]

    def until(self, said: str, done: Callable[[], bool]) -> None:
        while not done():
            self.seen.append(self.labels[self.right.look()])
            assert self.steps < 600
            chunk = self.actor.infer(Observation(self.steps, {}, np.zeros(1, np.float32)), said)
            self.env.step(chunk.actions[0])
            self.steps += 1

    @property
    def passed(self) -> int:
        return int(self.env.progress.stage[0])


@pytest.mark.parametrize("hand", [SkillActor, ReactiveActor])
def test_a_drawer_is_to_be_opened_until_the_hand_has_left_its_inside_in_sight(
    hand: type[SkillActor] | type[ReactiveActor],
) -> None:
    practice = Practice(4, hand)
    practice.until(OPEN, lambda: practice.passed == 1)
    halfway = float(practice.env.world().joint["top_drawer"][0])
    practice.until(OPEN, lambda: practice.seen[-1] == CLOSE)
    assert halfway < PULLED_M - 0.01 and set(practice.seen[1:-1]) == {OPEN}
    assert float(practice.env.world().joint["top_drawer"][0]) > PULLED_M - 0.02
    handle = practice.env.world().position_m["top_drawer"][0]
    assert practice.actor.arm.true_position[2] > float(handle[2]) + 0.2, "the hand camera looks in from above"
    practice.env.close()


def test_somebody_who_is_ahead_is_right_as_soon_as_it_is_done() -> None:
    practice = Practice(10)
    pick, pour = practice.labels[:2]
    practice.until(pour, lambda: practice.passed == 1)  # which begins by picking the bottle
    practice.until(pour, lambda: practice.seen[-1] != pick)
    assert practice.seen[-1] == pour and practice.actor.motion is not None
    practice.env.close()


def test_a_second_pour_is_not_taken_for_the_end_of_the_first() -> None:
    """Who goes on saying "1st" pours again: from the end of the first motion on, "2nd" is right."""
    practice = Practice(10)
    pick, first, second, put = practice.labels
    practice.until(pick, lambda: practice.passed == 1)
    practice.until(first, lambda: practice.passed == 2)
    motion = practice.actor.motion
    practice.until(first, lambda: practice.seen[-1] == second)
    assert practice.actor.motion is None and motion is not None
    practice.until(first, lambda: practice.passed == 3)
    assert practice.actor.motion == motion + 1 and practice.seen[-1] == second
    practice.until(second, lambda: practice.seen[-1] == put)
    assert practice.seen == ["", *sorted(practice.seen[1:], key=practice.labels.index)], "it never goes back"
    practice.env.close()


def test_who_pours_round_and_round_is_to_pour_again_as_soon_as_it_is_upright() -> None:
    practice = Practice(10, ReactiveActor)
    pick, first, second, _ = practice.labels
    practice.until(pick, lambda: practice.passed == 1)
    practice.until(first, lambda: practice.passed == 2)
    assert practice.seen[-1] == first and practice.actor.motion is None
    practice.until(first, lambda: practice.seen[-1] == second)
    assert practice.seen.count(second) == 1 and practice.passed == 2
    practice.env.close()

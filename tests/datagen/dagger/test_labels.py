"""The label of each step, while a policy carries out what is asked of it."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from mani_skill.utils.structs import Pose

from datagen.dagger.labels import SubtaskLabeller
from datagen.experts.memoryless.policy import MemorylessPolicy
from datagen.experts.scripted.drawer import PULLED_M
from datagen.experts.scripted.policy import ScriptedPolicy
from predimem.core.types import Observation
from predimem.envs.arena.objects import OBJECTS
from tests.datagen.experts import arena

OPEN, CLOSE = "open top drawer", "close the top drawer"


class PolicyEpisode:
    """An episode whose policy does what it is told; every step is labelled."""

    def __init__(self, task: int, policy: type[ScriptedPolicy] | type[MemorylessPolicy] = ScriptedPolicy):
        self.env = arena(task, 0)
        self.actor = policy(self.env)
        self.labeller = SubtaskLabeller(self.env, self.actor)
        self.labels = [subtask.label for subtask in self.env.variant().subtasks]
        self.steps, self.seen = 0, [""]

    def until(self, said: str, done: Callable[[], bool]) -> None:
        while not done():
            self.seen.append(self.labels[self.labeller.label()])
            assert self.steps < 600
            chunk = self.actor.infer(Observation(self.steps, {}, np.zeros(1, np.float32)), said)
            self.env.step(chunk.actions[0])
            self.steps += 1

    @property
    def passed(self) -> int:
        return int(self.env.progress.stage[0])


@pytest.mark.parametrize("policy", [ScriptedPolicy, MemorylessPolicy])
def test_a_drawer_is_to_be_opened_until_the_gripper_has_left_its_inside_in_sight(
    policy: type[ScriptedPolicy] | type[MemorylessPolicy],
) -> None:
    episode = PolicyEpisode(4, policy)
    episode.until(OPEN, lambda: episode.passed == 1)
    halfway = float(episode.env.world().joint["top_drawer"][0])
    episode.until(OPEN, lambda: episode.seen[-1] == CLOSE)
    assert halfway < PULLED_M - 0.01 and set(episode.seen[1:-1]) == {OPEN}
    assert float(episode.env.world().joint["top_drawer"][0]) > PULLED_M - 0.02
    handle = episode.env.world().position_m["top_drawer"][0]
    assert episode.actor.arm.true_position[2] > float(handle[2]) + 0.2, "the hand camera looks in from above"
    episode.env.close()


def test_somebody_who_is_ahead_is_right_as_soon_as_it_is_done() -> None:
    episode = PolicyEpisode(10)
    pick, pour = episode.labels[:2]
    episode.until(pour, lambda: episode.passed == 1)  # which begins by picking the bottle
    episode.until(pour, lambda: episode.seen[-1] != pick)
    assert episode.seen[-1] == pour and episode.actor.motion is not None
    episode.env.close()


def test_a_second_pour_is_not_taken_for_the_end_of_the_first() -> None:
    """Who goes on saying "1st" pours again: from the end of the first motion on, the label is "2nd"."""
    episode = PolicyEpisode(10)
    pick, first, second, put = episode.labels
    episode.until(pick, lambda: episode.passed == 1)
    episode.until(first, lambda: episode.passed == 2)
    motion = episode.actor.motion
    episode.until(first, lambda: episode.seen[-1] == second)
    assert episode.actor.motion is None and motion is not None
    episode.until(first, lambda: episode.passed == 3)
    assert episode.actor.motion == motion + 1 and episode.seen[-1] == second
    episode.until(second, lambda: episode.seen[-1] == put)
    assert episode.seen == ["", *sorted(episode.seen[1:], key=episode.labels.index)], "it never goes back"
    episode.env.close()


def test_who_pours_round_and_round_is_to_pour_again_as_soon_as_it_is_upright() -> None:
    episode = PolicyEpisode(10, MemorylessPolicy)
    pick, first, second, _ = episode.labels
    episode.until(pick, lambda: episode.passed == 1)
    episode.until(first, lambda: episode.passed == 2)
    assert episode.seen[-1] == first and episode.actor.motion is None
    episode.until(first, lambda: episode.seen[-1] == second)
    assert episode.seen.count(second) == 1 and episode.passed == 2
    episode.env.close()


def test_the_label_goes_back_to_what_came_out_again_and_then_to_what_is_due() -> None:
    episode = PolicyEpisode(1)
    pick, place, following = episode.labels[:3]
    episode.until(pick, lambda: episode.passed == 1)
    episode.until(place, lambda: episode.seen[-1] == following)
    free = torch.tensor([[-0.15, 0.0, 0.03]])
    episode.env.objects["cookies"].set_pose(Pose.create_from_pq(free))
    episode.until(following, lambda: episode.seen[-1] == pick)
    episode.until(pick, lambda: episode.seen[-1] == place)
    episode.until(place, lambda: episode.env.due.stage == 2)
    assert episode.seen[-1] == place and episode.actor.motion is not None
    episode.until(place, lambda: episode.seen[-1] != place)
    assert episode.seen[-1] == following and episode.actor.motion is None
    episode.env.close()


def test_two_things_that_came_out_are_put_back_one_after_the_other() -> None:
    """No label in between, and each until its motion has ended. Then, too, who carries something finishes first."""
    episode = PolicyEpisode(19)
    for done, label in enumerate(episode.labels[:4], 1):
        episode.until(label, lambda done=done: episode.passed == done)
    following = episode.labels[4]
    episode.until(episode.labels[3], lambda: episode.seen[-1] == following)
    began = len(episode.seen)
    for x, name in ((-0.25, "tomato_sauce"), (-0.12, "milk")):
        height_m = OBJECTS[name].half_height_m
        episode.env.objects[name].set_pose(Pose.create_from_pq(torch.tensor([[x, 0.0, height_m]])))
    for pick, place in (episode.labels[:2], episode.labels[2:4]):
        episode.until(episode.seen[-1], lambda pick=pick: episode.seen[-1] == pick)
        episode.until(pick, lambda place=place: episode.seen[-1] == place)
        episode.until(place, lambda place=place: episode.seen[-1] != place)
    assert list(dict.fromkeys(episode.seen[began:])) == [following, *episode.labels[:4]]
    assert episode.seen[-1] == following
    episode.env.close()

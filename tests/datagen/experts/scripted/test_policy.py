"""The scripted policy in real physics: planners that are late, early, wrong, or repeat themselves."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest
import torch
from mani_skill.utils.structs import Pose

from datagen.experts.scripted.policy import POUR_AGAIN_STEPS, ScriptedPolicy
from datagen.experts.scripted.subtask_names import due_label
from predimem.core.types import Observation
from predimem.envs.arena.scene.environment import ArenaEnv
from tests.datagen.experts import arena

PICK, POUR, POUR_AGAIN, PUT = (
    "pick wine bottle",
    "pour wine into mug 1st: mug red",
    "pour wine into mug 2nd: mug red",
    "place wine bottle on table",
)


class Stage:
    """An episode with its actor; `until` plays one label."""

    def __init__(self, task: int, seed: int = 0):
        self.env: ArenaEnv = arena(task, seed)
        self.actor = ScriptedPolicy(self.env)
        self.steps = 0
        self.over = self.success = False

    def step(self, label: str) -> str:
        """One control step; the subtask that it was for."""
        chunk = self.actor.infer(Observation(self.steps, {}, np.zeros(1, np.float32)), label)
        assert chunk.start_step == self.steps and chunk.actions.shape == (1, 8)
        info = self.env.step(chunk.actions[0])[-1]
        self.steps += 1
        self.success, self.over = bool(info["success"]), bool(info["success"]) or bool(info["fail"])
        return chunk.subtask

    def until(self, label: str, done: Callable[[], bool], limit: int = 400) -> int:
        for n in range(limit):
            if done() or self.over:
                return n
            self.step(label)
        raise AssertionError(f"{label} for {limit} steps, and it is not done")

    def play(self, label: str, steps: int) -> None:
        for _ in range(steps):
            self.step(label)

    @property
    def passed(self) -> int:
        return int(self.env.progress.stage[0])

    @property
    def pours(self) -> int:
        return int(self.env.progress.pours[0])

    def upright(self, name: str) -> float:
        return float(self.env.world().upright(name)[0])


@pytest.fixture
def wine() -> Iterator[Stage]:
    stage = Stage(10)
    assert POUR in [subtask.label for subtask in stage.env.variant().subtasks]
    yield stage
    stage.env.close()


@pytest.mark.parametrize("late_steps", [0, 14])
def test_a_planner_that_knows_what_is_due_succeeds_on_time_and_late(wine: Stage, late_steps: int) -> None:
    said = [due_label(wine.env)] * (late_steps + 1)
    while not wine.over and wine.steps < wine.env.task.horizon:
        wine.step(said[-1 - late_steps])
        said.append(due_label(wine.env))
    assert wine.success and wine.pours == 2


def test_asked_for_what_is_done_it_keeps_what_it_holds(wine: Stage) -> None:
    wine.until(PICK, lambda: wine.passed == 1)
    wine.play(PICK, 60)
    still = wine.env.agent.robot.qpos.clone()
    wine.play(PICK, 10)
    np.testing.assert_allclose(wine.env.agent.robot.qpos, still, atol=1e-3)
    wine.step(POUR)
    wine.until(POUR, lambda: wine.pours == 1)


def test_what_is_still_asked_for_is_tried_again(wine: Stage) -> None:
    """The bottle is snatched away under the gripper, which closes on nothing, and later out of it."""

    def height_m() -> float:
        return float(wine.env.world().bottom_m("wine_bottle")[0])

    def put_down(x: float, y: float) -> None:
        wine.env.objects["wine_bottle"].set_pose(Pose.create_from_pq(torch.tensor([[x, y, 0.06]])))

    wine.play(PICK, 15)
    put_down(-0.20, 0.10)
    wine.until(PICK, lambda: wine.passed == 1)
    wine.play(PICK, 30)
    put_down(-0.10, 0.0)
    wine.play(PICK, 5)
    assert height_m() < 0.01
    wine.until(PICK, lambda: height_m() > 0.05)


def test_a_planner_that_does_not_count_pours_too_often(wine: Stage) -> None:
    wine.until(PICK, lambda: wine.passed == 1)
    wine.until(POUR_AGAIN, lambda: wine.pours == 1)
    between = wine.until(POUR_AGAIN, lambda: wine.pours == 2)
    assert between > POUR_AGAIN_STEPS
    wine.until(POUR_AGAIN, lambda: wine.over)
    assert not wine.success and wine.env.failure() == "a pour that was not due"


def test_a_pour_is_broken_off_upright_and_the_bottle_stays_in_the_gripper(wine: Stage) -> None:
    wine.until(PICK, lambda: wine.passed == 1)
    wine.until(POUR, lambda: wine.upright("wine_bottle") < 0.7)
    assert wine.step(PUT) == POUR  # the gripper is not free yet
    wine.until(PUT, lambda: wine.step(PUT) == PUT)
    assert wine.upright("wine_bottle") > 0.95 and wine.pours == 0
    height = float(wine.env.world().bottom_m("wine_bottle")[0])
    assert height > 0.05
    wine.until(PUT, lambda: float(wine.env.world().bottom_m("wine_bottle")[0]) < 0.01)
    assert wine.upright("wine_bottle") > 0.95


def test_unknown_words_stop_the_arm_until_the_next_known_ones(wine: Stage) -> None:
    wine.play(PICK, 20)
    target = wine.actor.infer(Observation(20, {}, np.zeros(1, np.float32)), "wait a moment").actions
    wine.play("wait a moment", 20)
    np.testing.assert_array_equal(wine.actor.infer(Observation(40, {}, np.zeros(1, np.float32)), "").actions, target)
    wine.until(PICK, lambda: wine.passed == 1)


def test_an_opening_is_broken_off_and_the_drawer_shut_again() -> None:
    stage = Stage(4)
    drawer = lambda: float(stage.env.world().joint["top_drawer"][0])  # noqa: E731
    stage.until("open top drawer", lambda: drawer() > 0.06)
    stage.until("close the top drawer", lambda: stage.step("close the top drawer") == "close the top drawer")
    stage.until("close the top drawer", lambda: drawer() < 0.01)
    stage.until("open top drawer", lambda: stage.passed == 1)
    stage.until("close the top drawer", lambda: stage.passed == 2)
    stage.env.close()


def test_what_was_put_into_the_wrong_basket_can_be_put_right() -> None:
    stage = Stage(1)
    right = stage.env.variant().subtasks[1].target.replace("_", " ")
    wrong = {"basket left": "basket right", "basket right": "basket left"}[right]
    label = "place cookies into basket"
    stage.until(f"{label}: {wrong}", lambda: stage.passed == 1)
    stage.play(f"{label}: {wrong}", 110)  # ends above that basket and waits
    assert stage.passed == 1  # picked, not placed
    stage.until(f"{label}: {right}", lambda: stage.passed == 2)
    stage.env.close()

"""Whole episodes from perception, in real physics and real images."""

from typing import Any

import numpy as np
import pytest

from datagen.decompose.rules import decompose
from datagen.decompose.steps import Step
from datagen.decompose.vocabulary import vocabulary_of
from datagen.execution.config import ExecutionConfig
from datagen.execution.executor import Executor, GiveUp
from datagen.grasp.antipodal import AntipodalDetector
from datagen.grasp.types import Grasp, PointCloud
from predimem.envs.arena.scene.environment import ArenaEnv
from tests.datagen.perception import seeing_arena


def steps_of(env: ArenaEnv) -> tuple[Step, ...]:
    return decompose(env.instructions()[0], vocabulary_of(env.task))


def play(env: ArenaEnv, executor: Executor, steps: tuple[Step, ...]) -> int:
    """Play to the end; how many control steps it took."""
    count = 0
    for _ in executor.run(steps):
        env.step(executor.action())
        count += 1
    return count


@pytest.mark.parametrize("task, mode", [(1, "pd_ee_delta_pose"), (10, "pd_joint_pos"), (18, "pd_joint_pos")])
def test_a_task_is_done_from_what_is_seen(task: int, mode: str) -> None:
    env = seeing_arena(task, seed=1000, control_mode=mode)
    executor = Executor(env, AntipodalDetector(), ExecutionConfig())
    play(env, executor, steps_of(env))
    assert bool(env.evaluate()["success"][0])
    env.close()


def test_no_true_pose_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    env = seeing_arena(6, seed=1000)
    world, robot = env.world, env.agent.robot

    def forbidden() -> Any:
        raise AssertionError("the executor asked for the true state")

    executor = Executor(env, AntipodalDetector(), ExecutionConfig())
    for _ in executor.run(steps_of(env)[:2]):
        monkeypatch.setattr(env, "world", world)
        env.step(executor.action())
        monkeypatch.setattr(env, "world", forbidden)
    assert robot is env.agent.robot
    env.close()


class Beside:
    """A detector whose first answers lie beside the object: what a bad estimate does."""

    def __init__(self, misses: int):
        self._detector, self._misses = AntipodalDetector(), misses

    def detect(self, cloud: PointCloud) -> list[Grasp]:
        grasps = self._detector.detect(cloud)
        if self._misses == 0:
            return grasps
        self._misses -= 1
        best = grasps[0]
        aside = best.translation_m + 0.06 * best.rotation[:, 1]
        return [Grasp(aside, best.rotation, best.width_m, best.depth_m, best.score)]


def test_a_missed_grasp_is_noticed_and_tried_again() -> None:
    env = seeing_arena(2, seed=1000)
    executor = Executor(env, Beside(misses=1), ExecutionConfig(attempts=3))
    play(env, executor, steps_of(env)[:1])
    assert executor.retries == {0: 1}
    assert int(env.progress.stage[0]) == 1
    env.close()


def test_what_cannot_be_mended_is_given_up_with_its_cause() -> None:
    env = seeing_arena(2, seed=1000)
    executor = Executor(env, Beside(misses=9), ExecutionConfig(attempts=2))
    with pytest.raises(GiveUp, match="Move butter: not between the fingers"):
        play(env, executor, steps_of(env))
    assert executor.retries == {0: 1}
    env.close()


def test_attempts_below_one_are_refused() -> None:
    with pytest.raises(ValueError, match="attempts must be >= 1, got 0"):
        ExecutionConfig(attempts=0)


@pytest.mark.slow
def test_the_same_seed_gives_the_same_actions() -> None:
    actions = []
    for _ in range(2):
        env = seeing_arena(6, seed=1001)
        executor = Executor(env, AntipodalDetector(), ExecutionConfig())
        taken = []
        for _ in executor.run(steps_of(env)[:1]):
            taken.append(executor.action())
            env.step(taken[-1])
        actions.append(np.stack(taken))
        env.close()
    np.testing.assert_array_equal(*actions)

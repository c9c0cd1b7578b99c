"""Objects are put into drawers and the microwave beside what is there, and stay when these are shut."""

import pytest

from datagen.experts.scripted.execute import run, skill
from datagen.experts.scripted.insert import place_in_drawer, place_in_microwave
from datagen.experts.scripted.true_scene import TrueScene
from predimem.envs.arena.predicates import Closed, Inside, Placed
from predimem.envs.arena.robot.arm import Arm
from tests.datagen.experts import arena

SCENES = [
    (12, 0, "right"),
    (24, 1, "left"),
    *(pytest.param(*scene, marks=pytest.mark.slow) for scene in [(12, 3, "left"), (24, 0, "right")]),
]


@pytest.mark.parametrize("task, seed, side", SCENES)
def test_two_objects_go_in_and_it_shuts(task: int, seed: int, side: str) -> None:
    env = arena(task, seed)
    arm, scene = Arm(env), TrueScene(env)
    subtasks = env.variant().subtasks
    assert subtasks[2].target.endswith(side)
    for subtask in subtasks:
        run(env, arm, skill(arm, scene, subtask))
        assert scene.holds(subtask.done), subtask.label
    assert scene.holds(Closed(subtasks[-1].target))
    for subtask in subtasks:
        if isinstance(subtask.done, Placed):
            assert scene.holds(Inside(subtask.object, subtask.target)), subtask.label
    env.close()


def test_the_object_goes_beside_what_the_drawer_holds() -> None:
    env = arena(4, 2)
    arm, scene = Arm(env), TrueScene(env)
    occupied = env.variant().start["cookies"]
    for subtask in env.variant().subtasks[-3:]:
        run(env, arm, skill(arm, scene, subtask))
        assert scene.holds(subtask.done), subtask.label
    assert scene.holds(Inside("butter", occupied)) and scene.holds(Inside("cookies", occupied))
    env.close()


def test_an_empty_gripper_does_nothing() -> None:
    env = arena(12, 0)
    arm, scene = Arm(env), TrueScene(env)
    assert run(env, arm, place_in_drawer(arm, scene, "cookies", "middle_drawer")) == 0
    assert run(env, arm, place_in_microwave(arm, scene, "cookies", "microwave")) == 0
    env.close()

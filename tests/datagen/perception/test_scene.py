"""What the executor believes, next to the truth."""

import numpy as np
import pytest

from datagen.experts.scripted.drawer import open_drawer
from datagen.experts.scripted.execute import run
from datagen.experts.scripted.pick import pick
from datagen.grasp.antipodal import AntipodalDetector
from datagen.perception.furniture import NotSeenError
from datagen.perception.scene import PerceivedScene
from datagen.perception.views import look
from predimem.envs.arena.robot.arm import CLOSED, Arm
from tests.datagen.perception import seeing_arena


def perceived(env: object) -> PerceivedScene:
    scene = PerceivedScene(env.task.objects, env.task.fixtures, lambda: look(env), AntipodalDetector())  # type: ignore[attr-defined]
    scene.look()
    return scene


@pytest.mark.parametrize("task", [6, 19, 25])
def test_objects_are_where_they_are_seen(task: int) -> None:
    env = seeing_arena(task, seed=3)
    scene = perceived(env)
    assert set(scene.objects) == set(env.task.objects)
    for name in scene.objects:
        true = env.world().position_m[name][0].numpy()
        np.testing.assert_allclose(scene.position_m(name)[:2], true[:2], atol=0.010, err_msg=name)
        assert scene.position_m(name)[2] == pytest.approx(true[2], abs=0.010), name
    for name in env.task.fixtures:
        where = {place for place in env.task.fixtures if place == name}
        inside = {o for o in scene.objects if scene.inside(o, name)}
        assert inside == {o for o, place in env.variant().start.items() if place in where}
    env.close()


def test_what_lies_in_a_shut_drawer_is_not_known_and_is_found_by_opening_it() -> None:
    env = seeing_arena(4, seed=4)
    scene, arm = perceived(env), Arm(env)
    occupied = env.variant().start["cookies"]
    assert set(scene.objects) == {"butter", "chocolate_pudding"} and not scene.contents
    with pytest.raises(NotSeenError, match="cookies"):
        scene.position_m("cookies")
    run(env, arm, open_drawer(arm, scene, occupied))
    scene.look()
    assert scene.contents == {occupied: {"cookies"}}
    assert scene.inside("cookies", occupied) and not scene.inside("butter", occupied)
    env.close()


def test_what_the_gripper_holds_moves_with_it() -> None:
    env = seeing_arena(6, seed=1)
    scene, arm = perceived(env), Arm(env)
    name = "tomato_sauce"
    scene.reaching_for = name
    for _ in pick(arm, scene, name):
        env.step(arm.action())
        scene.follow(arm)
    assert scene.held == name and arm.gripper == CLOSED
    true = env.world().position_m[name][0].numpy()
    np.testing.assert_allclose(scene.position_m(name), true, atol=0.010)
    assert scene.rotation(name)[2, 2] > 0.95
    for _ in arm.grip(1.0):
        env.step(arm.action())
        scene.follow(arm)
    assert scene.held == ""
    env.close()


def test_a_grasp_that_failed_is_not_tried_again() -> None:
    env = seeing_arena(6, seed=1)
    scene, arm = perceived(env), Arm(env)
    first = scene.grasp(arm, "cookies")
    second = scene.grasp(arm, "cookies")
    assert first is not None and second is not None
    assert np.linalg.norm(first[0] - second[0]) > 0.01 or not np.allclose(first[1], second[1], atol=0.1)
    scene.forget_grasps()
    again = scene.grasp(arm, "cookies")
    assert again is not None
    np.testing.assert_allclose(again[0], first[0])
    env.close()


def test_mats_are_seen_where_they_lie() -> None:
    env = seeing_arena(1, seed=5)
    assert perceived(env).marked == set(env.variant().mats)
    env.close()

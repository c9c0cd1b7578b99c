"""Placing, judged by the benchmark's predicate; the free slots by hand."""

import numpy as np
import pytest

from datagen.experts.scripted.execute import run
from datagen.experts.scripted.pick import pick
from datagen.experts.scripted.place import place, room_m, slot_m, table_point_m
from datagen.experts.scripted.scene import place_point_m
from datagen.experts.scripted.true_scene import TrueScene
from predimem.envs.arena.fixtures import PLACES, SPAWN_HIGH_M, SPAWN_LOW_M
from predimem.envs.arena.predicates import Placed
from predimem.envs.arena.robot.arm import Arm
from tests.datagen.experts import arena


@pytest.mark.parametrize(
    ("task", "object", "where"),
    [
        (1, "cookies", "basket_left"),
        (15, "butter", "frying_pan"),
        (16, "milk", "drainer"),
        (10, "wine_bottle", "table"),
    ],
)
def test_it_is_placed_upright(task: int, object: str, where: str) -> None:
    env = arena(task, 1)
    arm, scene = Arm(env), TrueScene(env)
    run(env, arm, pick(arm, scene, object))
    assert run(env, arm, place(arm, scene, object, where)) < 130
    run(env, arm, arm.wait(5))
    assert scene.holds(Placed(object, where, upright=True))
    env.close()


@pytest.mark.parametrize("task", [19, 25])
def test_transfers_fill_free_slots_in_order(task: int) -> None:
    env = arena(task, 0)
    arm, scene = Arm(env), TrueScene(env)
    first, second = [s for s in env.variant().subtasks if s.object and s.object != s.target][:2]
    run(env, arm, pick(arm, scene, first.object))
    np.testing.assert_array_equal(
        slot_m(scene, first.object, first.target), place_point_m(scene, first.target, PLACES[first.target].slots_m[0])
    )
    run(env, arm, place(arm, scene, first.object, first.target))
    np.testing.assert_array_equal(
        slot_m(scene, second.object, first.target), place_point_m(scene, first.target, PLACES[first.target].slots_m[1])
    )
    run(env, arm, arm.wait(5))
    assert scene.holds(first.done)
    env.close()


def test_the_point_on_the_table_has_room() -> None:
    env = arena(6, 5)
    scene = TrueScene(env)
    point = table_point_m(scene, "tomato_sauce")
    assert (point[:2] >= SPAWN_LOW_M).all() and (point[:2] <= np.add(SPAWN_HIGH_M, 1e-6)).all() and point[2] == 0.0
    others = [scene.position_m(name)[:2] for name in env.task.objects if name != "tomato_sauce"]
    assert room_m(scene, "tomato_sauce", point) == min(np.linalg.norm(point[:2] - other) for other in others) > 0.1
    env.close()


def test_nothing_is_done_with_an_empty_gripper() -> None:
    env = arena(10, 0)
    arm, scene = Arm(env), TrueScene(env)
    assert run(env, arm, place(arm, scene, "wine_bottle", "table")) == 0
    env.close()

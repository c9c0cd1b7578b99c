"""Picking from the table, a plate and a shelf, judged by the benchmark's predicate."""

import pytest
import torch
from mani_skill.utils.structs import Pose

from datagen.experts.scripted.execute import run
from datagen.experts.scripted.pick import half_height_m, holds, pick
from datagen.experts.scripted.true_scene import TrueScene
from predimem.envs.arena.predicates import Held
from predimem.envs.arena.robot.arm import OPEN, Arm
from tests.datagen.experts import arena


@pytest.mark.parametrize(
    ("task", "seed", "object", "control_mode"),
    [
        (10, 0, "wine_bottle", "pd_joint_pos"),
        (25, 0, "butter", "pd_joint_pos"),
        (19, 1, "milk", "pd_joint_pos"),
        (2, 2, "popcorn", "pd_ee_delta_pose"),
    ],
)
def test_it_is_held(task: int, seed: int, object: str, control_mode: str) -> None:
    env = arena(task, seed, control_mode)
    arm, scene = Arm(env), TrueScene(env)
    assert not holds(arm, scene, object)
    assert run(env, arm, pick(arm, scene, object)) < 110
    assert holds(arm, scene, object) and scene.holds(Held(object))
    env.close()


def test_a_bottle_that_fell_over_can_be_picked_and_an_empty_grasp_is_known() -> None:
    env = arena(10, 3)
    arm, scene = Arm(env), TrueScene(env)
    x, y, _ = scene.position_m("wine_bottle")
    lying = torch.tensor([[0.7071068, 0.7071068, 0.0, 0.0]])
    env.objects["wine_bottle"].set_pose(Pose.create_from_pq(torch.tensor([[x, y, 0.023]], dtype=torch.float32), lying))
    assert half_height_m(scene, "wine_bottle") == pytest.approx(0.022, abs=1e-4)
    motion = pick(arm, scene, "wine_bottle")
    run(env, arm, motion)
    assert holds(arm, scene, "wine_bottle")

    env.reset(seed=4)
    arm.reset()
    motion = pick(arm, scene, "wine_bottle")
    for _ in range(5):
        next(motion)
    env.objects["wine_bottle"].set_pose(Pose.create_from_pq(torch.tensor([[0.3, 0.6, 0.06]])))  # snatched away
    run(env, arm, motion)
    assert not holds(arm, scene, "wine_bottle") and arm.gripper == OPEN
    env.close()

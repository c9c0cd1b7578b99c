import numpy as np
import pytest
import torch

from datagen.execution.executor import LOOK_M, LOOK_YAW_RAD
from datagen.experts.scripted.execute import run
from datagen.perception.furniture import NotSeenError, fixture_position_m, opening
from datagen.perception.views import look
from predimem.envs.arena.fixtures import DOOR, DRAWERS
from predimem.envs.arena.robot.arm import Arm
from predimem.envs.arena.robot.rotations import top_down
from tests.datagen.perception import seeing_arena


@pytest.mark.parametrize("task", [1, 6, 7, 10, 18, 25])
def test_furniture_is_found_within_a_centimetre(task: int) -> None:
    env = seeing_arena(task, seed=task)
    views = look(env)[:1]
    for name in ("cabinet", "microwave", *env.task.fixtures):
        true = env.world().position_m[name][0].numpy()
        np.testing.assert_allclose(fixture_position_m(views, name), true, atol=0.010, err_msg=name)
    env.close()


def test_openings_are_measured() -> None:
    env = seeing_arena(4, seed=0)
    arm = Arm(env)
    run(env, arm, arm.rise(LOOK_M[2]))
    run(env, arm, arm.travel(np.array(LOOK_M), top_down(LOOK_YAW_RAD)))  # elsewhere the arm may hide a drawer's front
    views = look(env)[:1]
    cabinet, microwave = (fixture_position_m(views, name) for name in ("cabinet", "microwave"))
    joints = [joint.name for joint in env.fixtures["cabinet"].active_joints]
    for drawer in DRAWERS:
        for metres in (0.0, 0.03, 0.12, 0.18):
            qpos = torch.zeros(1, 3)
            qpos[0, joints.index(drawer)] = metres
            env.fixtures["cabinet"].set_qpos(qpos)
            assert opening(look(env)[:1], drawer, cabinet) == pytest.approx(metres, abs=0.01), drawer
    for angle in (0.0, 0.05, 0.5, 1.0, 1.6):
        env.fixtures["microwave"].set_qpos(torch.tensor([[angle]]))
        assert opening(look(env)[:1], DOOR, microwave) == pytest.approx(angle, abs=0.03)
    env.close()


def test_what_is_not_in_the_image_is_not_made_up() -> None:
    env = seeing_arena(4, seed=0)
    with pytest.raises(NotSeenError, match=r"frying_pan: 0 points in agentview_depth"):
        fixture_position_m(look(env)[:1], "frying_pan")
    env.close()

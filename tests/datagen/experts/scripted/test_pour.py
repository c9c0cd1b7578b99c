"""One call is one pour, by the environment's own count."""

import pytest

from datagen.experts.scripted.execute import run
from datagen.experts.scripted.pick import holds, pick
from datagen.experts.scripted.pour import pour
from datagen.experts.scripted.true_scene import TrueScene
from predimem.envs.arena.robot.arm import Arm
from tests.datagen.experts import arena


@pytest.mark.parametrize(
    ("task", "control_mode"), [(10, "pd_joint_pos"), (6, "pd_joint_pos"), (7, "pd_joint_pos"), (16, "pd_ee_delta_pose")]
)
def test_each_call_pours_once(task: int, control_mode: str) -> None:
    env = arena(task, 2, control_mode)
    arm, scene = Arm(env), TrueScene(env)
    pouring = env.variant().pour
    assert pouring is not None
    object, target = pouring.object, pouring.target
    assert run(env, arm, pour(arm, scene, object, target)) == 0  # not held
    run(env, arm, pick(arm, scene, object))
    for times in (1, 2):
        run(env, arm, pour(arm, scene, object, target))
        assert int(env.progress.pours[0]) == times
        assert holds(arm, scene, object) and scene.rotation(object)[2, 2] > 0.97
        assert env.failure() == ""
    env.close()

"""A mat in a drawer is seen where the drawer is."""

from __future__ import annotations

import numpy as np
import torch

from predimem.envs.arena.scene.environment import ArenaEnv


def test_the_mat_goes_with_its_drawer_and_the_other_mat_stays_away() -> None:
    env = ArenaEnv(task=12, obs_mode="none", control_mode="pd_joint_pos", sim_backend="cpu", render_backend="none")
    try:
        env.reset(seed=3)
        (marked,) = env.variant().mats
        (other,) = set(env.mats) - {marked}
        shut = {place: mat.pose.p[0].clone() for place, mat in env.mats.items()}
        cabinet = env.fixtures["cabinet"]
        names = [joint.name for joint in cabinet.active_joints]
        cabinet.set_qpos(torch.tensor([[0.15 if name == "middle_drawer" else 0.0 for name in names]]))
        for _ in range(3):
            env.step(env.agent.robot.qpos[0, :8].numpy())
        pulled = float(env.world().joint["middle_drawer"])
        assert 0.1 < pulled < 0.2
        moved = env.mats[marked].pose.p[0] - shut[marked]
        np.testing.assert_allclose(moved, [-pulled, 0.0, 0.0], atol=0.002)
        np.testing.assert_array_equal(env.mats[other].pose.p[0], shut[other])
        assert float(shut[other][2]) < 0.0 < float(shut[marked][2])
    finally:
        env.close()

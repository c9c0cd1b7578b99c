"""Drawers are opened and shut, whatever is in them, and the table is left as it was."""

import numpy as np
import pytest
import torch

from datagen.experts.scripted.drawer import close_drawer, open_drawer
from datagen.experts.scripted.execute import run
from datagen.experts.scripted.true_scene import TrueScene
from predimem.envs.arena.fixtures import DRAWERS
from predimem.envs.arena.predicates import Closed, Inside, Opened
from predimem.envs.arena.robot.arm import Arm
from predimem.envs.arena.scene.environment import ArenaEnv
from tests.datagen.experts import arena

STEPS = 200  # half of what the task leaves for it


def leave_open(env: ArenaEnv, opening_m: float) -> None:
    """Put all drawers `opening_m` open."""
    cabinet = env.scene.articulations["cabinet"]
    cabinet.set_qpos(torch.full((1, len(DRAWERS)), opening_m))
    cabinet.set_qvel(torch.zeros(1, len(DRAWERS)))


@pytest.mark.parametrize("seed, drawer", enumerate(DRAWERS))
def test_a_drawer_is_opened_and_closed(seed: int, drawer: str) -> None:
    env = arena(4, seed)
    arm, scene = Arm(env), TrueScene(env)
    butter, occupied = scene.position_m("butter"), env.variant().start["cookies"]
    for motion, done in ((open_drawer, Opened), (close_drawer, Closed)):
        assert not scene.holds(done(drawer))
        assert run(env, arm, motion(arm, scene, drawer)) <= STEPS
        assert scene.holds(done(drawer))
        assert all(scene.holds(Closed(other)) for other in DRAWERS if other != drawer)
        assert scene.holds(Inside("cookies", occupied))
    np.testing.assert_allclose(arm.true_position, arm.home_position, atol=0.01)
    np.testing.assert_allclose(scene.position_m("butter"), butter, atol=0.005)
    env.close()


def test_a_drawer_is_opened_by_relative_actions() -> None:
    env = arena(4, 3, "pd_ee_delta_pose")
    arm, scene = Arm(env), TrueScene(env)
    run(env, arm, open_drawer(arm, scene, "middle_drawer"))
    assert scene.holds(Opened("middle_drawer"))
    env.close()


@pytest.mark.parametrize("motion, done", [(open_drawer, Opened), (close_drawer, Closed)])
def test_a_drawer_that_was_left_ajar(motion, done) -> None:
    env = arena(12, 0)
    arm, scene = Arm(env), TrueScene(env)
    leave_open(env, 0.06)
    run(env, arm, motion(arm, scene, "top_drawer"))
    assert scene.holds(done("top_drawer"))
    env.close()


def test_an_open_drawer_is_left_alone() -> None:
    env = arena(12, 0)
    arm, scene = Arm(env), TrueScene(env)
    leave_open(env, 0.19)
    run(env, arm, open_drawer(arm, scene, "top_drawer"))
    assert scene.opening("top_drawer") == pytest.approx(0.19, abs=1e-3)
    env.close()

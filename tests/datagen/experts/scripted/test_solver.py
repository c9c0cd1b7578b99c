"""The oracle succeeds, mends a mishap and then keeps still; another variant's script fails."""

import numpy as np
import pytest
import torch
from mani_skill.utils.structs import Pose

from datagen.experts.scripted.solver import OracleSolver, ScriptSolver
from predimem.envs.arena.scene.environment import ArenaEnv
from tests.datagen.experts import arena


def play(env: ArenaEnv, solver: OracleSolver | ScriptSolver) -> tuple[bool, list[str]]:
    """(whether the task ended in success, the subtasks in the order in which they began)."""
    labels: list[str] = []
    for _ in range(env.task.horizon):
        action = solver.action()
        if solver.subtask not in labels:
            labels.append(solver.subtask)
        info = env.step(action)[-1]
        if bool(info["success"]) or bool(info["fail"]):
            return bool(info["success"]), labels
    return False, labels


@pytest.mark.slow
@pytest.mark.parametrize("control_mode", ["pd_joint_pos", "pd_ee_delta_pose"])
def test_oracle_pours_twice_and_puts_the_bottle_back(control_mode: str) -> None:
    env = arena(10, 0, control_mode)
    solver = OracleSolver(env)
    success, labels = play(env, solver)
    assert success and labels == [subtask.label for subtask in env.variant().subtasks]
    assert int(env.progress.pours[0]) == 2
    for _ in range(30):
        env.step(solver.action())
    still = solver.action()
    for _ in range(5):
        np.testing.assert_allclose(solver.action(), still, atol=0.02)
        env.step(solver.action())
    env.close()


def test_oracle_picks_up_again_what_was_lost() -> None:
    env = arena(1, 0)
    solver = OracleSolver(env)
    while int(env.progress.stage[0]) < 1:
        env.step(solver.action())
    free = torch.tensor([[-0.15, 0.0, 0.03]])
    env.objects["cookies"].set_pose(Pose.create_from_pq(free))  # out of the gripper, back onto the table
    assert play(env, solver)[0]
    env.close()


def test_oracle_puts_back_what_came_out_again() -> None:
    env = arena(1, 0)
    solver = OracleSolver(env)
    while int(env.progress.stage[0]) < 2:
        env.step(solver.action())
    free = torch.tensor([[-0.15, 0.0, 0.03]])
    env.objects["cookies"].set_pose(Pose.create_from_pq(free))  # out of the basket, back onto the table
    assert play(env, solver)[0]
    env.close()


def test_oracle_tries_again_what_it_missed() -> None:
    env = arena(1, 0)
    solver = OracleSolver(env)
    for _ in range(15):
        env.step(solver.action())
    elsewhere = torch.tensor([[-0.20, 0.10, 0.03]])
    env.objects["cookies"].set_pose(Pose.create_from_pq(elsewhere))  # the gripper is on its way to where they were
    assert play(env, solver)[0]
    env.close()


def test_a_script_for_another_variant_fails_and_for_this_one_succeeds() -> None:
    env = arena(25, 0)
    for variant in env.task.variants:
        env.reset(seed=0)
        success, labels = play(env, ScriptSolver(env, variant.subtasks))
        assert success == (variant is env.variant())
        assert labels == [subtask.label for subtask in variant.subtasks]
    env.close()

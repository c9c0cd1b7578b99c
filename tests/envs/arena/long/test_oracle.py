"""The oracle plays a whole long task: through its pause, its visits and its stages."""

from __future__ import annotations

import pytest

from datagen.experts.arena import oracle
from datagen.experts.scripted.subtask_names import due_label
from predimem.envs.arena import suite


@pytest.mark.slow
def test_the_oracle_solves_a_long_task_and_waits() -> None:
    environment = suite.make("long-12", "pd_joint_pos", 64, False, "maniskill")
    environment.reset(500_000)
    solver, simulation = oracle(environment), environment.simulation
    variant = simulation.variant()
    (pause,) = variant.pauses
    waited, said = 0, set()
    while True:
        result = environment.step(solver.action())
        if simulation.waiting:
            waited += 1
            said.add(due_label(simulation))
        if result.terminated or result.truncated:
            break
    environment.close()
    assert result.success and result.info["stages_passed"] == len(variant.subtasks) >= 12
    assert waited >= pause.steps and said == {variant.subtasks[pause.stage - 1].label}

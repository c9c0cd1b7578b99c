"""The memoryless expert with the oracle planner, in real physics."""

import numpy as np

from datagen.experts.memoryless.policy import MemorylessPolicy
from datagen.experts.scripted.subtask_names import due_label
from predimem.core.types import Observation
from tests.datagen.experts import arena

MOST_STEPS = 1200


def test_told_what_is_due_it_does_a_task_and_without_a_subtask_it_stands_still() -> None:
    env = arena(10, 1000)
    actor = MemorylessPolicy(env)

    def step(n: int, label: str) -> dict:
        chunk = actor.infer(Observation(n, {}, np.zeros(1, np.float32)), label)
        assert chunk.actions.shape == (1, 8) and chunk.start_step == n and chunk.subtask == label
        return env.step(chunk.actions[0])[-1]

    before = actor.arm.true_position
    for n in range(10):
        step(n, "fold the towel")
    assert np.linalg.norm(actor.arm.true_position - before) < 0.002
    info = next((i for i in (step(n, due_label(env)) for n in range(MOST_STEPS)) if i["success"] or i["fail"]), {})
    assert info and bool(info["success"]) and not bool(info["fail"])
    env.close()

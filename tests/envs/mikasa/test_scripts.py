"""Every family's script in the suite's own simulation, without images, judged by the suite."""

import numpy as np
import pytest

from predimem.envs.mikasa.expert import expert
from predimem.envs.mikasa.families.registry import family_of
from predimem.envs.mikasa.families.rollout import CHUNK_STEPS, chunk
from predimem.envs.mikasa.suite import MikasaEnvironment

pytestmark = pytest.mark.needs("suite")
SEEDS = (3000, 3001)
QUICK = ("InterceptMedium-VLA-v0", "BlinkCountButtonPressEasy-VLA-v0", "TakeItBack-VLA-v0")
SLOW = (
    "InterceptFast-VLA-v0",
    "BunchOfColors3-VLA-v0",
    "SeqOfColors7-VLA-v0",
    "TimedTransferEasy-VLA-v0",
    "GatherAndRecall3-VLA-v0",
)
TASKS = [*QUICK, *(pytest.param(task, marks=pytest.mark.slow) for task in SLOW)]


@pytest.mark.parametrize("task", TASKS)
def test_the_script_succeeds_and_doing_nothing_does_not(task: str) -> None:
    environment, family = MikasaEnvironment(task, images=False), family_of(task)
    assert family is not None
    known = family.subtasks(task)
    for seed in SEEDS:
        environment.reset(seed)
        script, said, success = expert(environment), set(), False
        script.reset()
        for _ in range(environment.horizon):
            state = environment.true_state()
            said.add(family.subtask(state))
            assert family.valid(state, family.subtask(state))
            success = environment.step(script.action()).success
            if success:
                break
        assert success and said <= set(known)
    environment.reset(SEEDS[0])
    assert not any(environment.step(environment.hold_action(None)).success for _ in range(environment.horizon))
    environment.close()


@pytest.mark.parametrize("task", TASKS)
def test_every_subtask_has_an_action_in_every_state(task: str) -> None:
    environment, family = MikasaEnvironment(task, images=False), family_of(task)
    assert family is not None
    environment.reset(SEEDS[0])
    script = expert(environment)
    script.reset()
    for step in range(environment.horizon):
        state = environment.true_state()
        for subtask in family.subtasks(task) if step % 7 == 0 else ():
            actions = chunk(family, state, subtask)
            assert actions.shape == (CHUNK_STEPS, 7) and np.abs(actions).max() <= 1
            target = family.target_m(state, subtask)
            assert target is None or target.shape == (3,)
        action = script.action()
        np.testing.assert_array_equal(action, family.act(state, family.subtask(state)))
        result = environment.step(action)
        if result.success or result.terminated:
            break
    environment.close()

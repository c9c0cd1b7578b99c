"""The policy that fails: it stands still, closes on nothing, and lets things fall."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from datagen.dagger.config import DisturbanceConfig
from datagen.dagger.faulty_policy import FaultyPolicy
from datagen.dagger.worker import CALM
from datagen.experts.scripted.policy import ScriptedPolicy
from predimem.core.types import Observation
from tests.datagen.experts import arena


def play(config: DisturbanceConfig, task: int, label: str, stop: int) -> tuple[list[str], np.ndarray, FaultyPolicy]:
    """What went wrong until `stop` stages were passed (or 500 steps), the joint angles [T, 9], and the policy."""
    env: Any = arena(task, 0)
    policy = FaultyPolicy(env, ScriptedPolicy(env), config, np.random.default_rng(0))
    angles = []
    for step in range(500):
        chunk = policy.infer(Observation(step, {}, np.zeros(1, np.float32)), label)
        env.step(chunk.actions[0])
        angles.append(env.agent.robot.qpos[0].numpy().copy())
        if int(env.progress.stage[0]) == stop:
            break
    env.close()
    return [event.kind for event in policy.events], np.stack(angles), policy


def test_a_calm_policy_does_what_the_skills_do() -> None:
    kinds, angles, _ = play(CALM, 1, "pick cookies", 1)
    env: Any = arena(1, 0)
    actor = ScriptedPolicy(env)
    for step in range(len(angles)):
        env.step(actor.infer(Observation(step, {}, np.zeros(1, np.float32)), "pick cookies").actions[0])
    np.testing.assert_array_equal(env.agent.robot.qpos[0].numpy(), angles[-1])
    assert kinds == []
    env.close()


def test_a_pause_stands_still_and_the_motion_goes_on_afterwards() -> None:
    config = replace(CALM, pauses_per_minute=60.0, pause_s=(1.0, 1.0))
    kinds, angles, policy = play(config, 1, "pick cookies", 1)
    assert set(kinds) == {"pause"} and len(angles) < 499
    pause = policy.events[0]
    assert pause.end - pause.start == 20
    assert np.abs(np.diff(angles[pause.start + 8 : pause.end], axis=0)).max() < 1e-3


@pytest.mark.slow
def test_a_grasp_that_misses_is_tried_again() -> None:
    missing, _, _ = play(replace(CALM, missed_share=1.0), 1, "pick cookies", 1)
    assert len(missing) >= 2 and set(missing) == {"missed grasp"}
    _, angles, _ = play(replace(CALM, missed_share=1.0), 4, "open top drawer", 1)
    assert angles[:, 7:].min() > 0.035 and len(angles) == 500, "the gripper never closed, so the drawer stayed shut"


@pytest.mark.parametrize("task, label", [(1, "place cookies into basket: basket left"), (6, "pick tomato sauce")])
def test_what_is_carried_falls_unless_it_can_be_poured(task: int, label: str) -> None:
    kinds, angles, policy = play(replace(CALM, dropped_share=1.0), task, label, 9)
    if task == 6:
        assert kinds == []
        return
    assert set(kinds) == {"drop"}
    drop = policy.events[0]
    assert angles[drop.start, 7] < 0.039 <= angles[drop.end - 1, 7]
    assert len(kinds) >= 2, "it is picked up again"

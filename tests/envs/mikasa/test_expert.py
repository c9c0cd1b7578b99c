"""The expert's numbers by hand, and its whole episode on a point."""

import numpy as np
import pytest

from predimem.core.interfaces import Policy
from predimem.core.types import Observation
from predimem.envs.mikasa import expert
from predimem.envs.mikasa.families.motion import hold
from predimem.envs.mikasa.families.rollout import alternatives, chunk, project
from tests.envs.mikasa.point_environment import CAMERA, POINT, PointEnvironment


def at(environment: PointEnvironment, step: int, seed: int = 2) -> dict:
    environment.reset(seed)
    for _ in range(step):
        environment.step(hold())
    return environment.privileged()


def script(state: dict) -> np.ndarray:
    return POINT.act(state, POINT.subtask(state))


def test_labels_follow_the_phases() -> None:
    environment = PointEnvironment("point")
    labels = [POINT.subtask(at(environment, t)) for t in range(6)]
    assert labels == ["watch", "watch", "wait", "wait", "touch the blue cube", "touch the blue cube"]


def test_it_holds_until_the_objects_appear_and_then_goes_at_full_speed() -> None:
    environment = PointEnvironment("point")
    np.testing.assert_array_equal(script(at(environment, 3)), [0, 0, 0, 0, 0, 0, -1])
    action = script(at(environment, 4))
    # From (0, 0.1, 0.3) to 3 cm above (0.2, 0, 0.02): 0.335 m away, so the command is cut to 0.1 m.
    direction = np.array([0.2, -0.1, -0.25]) / np.sqrt(0.04 + 0.01 + 0.0625)
    np.testing.assert_allclose(action[:3], direction, rtol=1e-6)
    assert action[3:].tolist() == [0, 0, 0, -1]


def test_near_the_goal_the_gain_decides_and_within_12_mm_it_rests() -> None:
    state = at(PointEnvironment("point"), 4)
    state["tcp_m"] = np.array([0.18, 0.0, 0.05])
    np.testing.assert_allclose(script(state)[:3], [0.3, 0, 0], atol=1e-6)  # 1.5 * 0.02 m
    state["tcp_m"] = np.array([0.19, 0.0, 0.05])
    np.testing.assert_array_equal(script(state)[:3], 0)


def test_a_chunk_is_what_the_expert_then_does() -> None:
    environment = PointEnvironment("point")
    state = at(environment, 4)
    actions = chunk(POINT, state, POINT.subtask(state))
    for action in actions:
        np.testing.assert_allclose(script(environment.privileged()), action, atol=1e-5)
        environment.step(action)


def test_projection() -> None:
    np.testing.assert_allclose(project(np.array([0.1, 0.2, 0.5]), CAMERA, (100, 100)), [0.7, 0.1])
    assert np.isnan(project(np.array([2.0, 0, 0]), CAMERA, (100, 100))).all()  # beside the image
    assert np.isnan(project(np.array([0, 0, 1.5]), CAMERA, (100, 100))).all()  # behind the camera


def test_alternatives() -> None:
    environment = PointEnvironment("point")
    states = [at(environment, 3), at(environment, 4)]
    got = alternatives(POINT, states, POINT.subtasks("point"))
    assert got.subtasks == (
        "watch",
        "wait",
        "touch the red cube",
        "touch the lime cube",
        "touch the blue cube",
    )
    assert got.valid.tolist() == [[True, True, False, False, False], [False, True, True, True, True]]
    assert got.chunks.shape == (2, 5, 8, 7) and got.chunks.dtype == np.float32
    np.testing.assert_array_equal(got.chunks[0], np.broadcast_to(hold(), (5, 8, 7)))
    np.testing.assert_array_equal(got.chunks[1, 1], np.broadcast_to(hold(), (8, 7)))
    np.testing.assert_array_equal(got.chunks[1, 4], chunk(POINT, states[1], "touch the blue cube"))
    assert np.isnan(got.targets_m[0]).all() and np.isnan(got.targets_m[1, :2]).all()
    np.testing.assert_allclose(got.targets_m[1, 2:, 0], [0.4, 0.6, 0.8], rtol=1e-6)  # from the base
    np.testing.assert_allclose(got.pixels[1, 3, 0], [0.5, 0.5], rtol=1e-6)
    assert np.isnan(got.pixels[1, 0]).all()


@pytest.mark.parametrize("seed", range(3))
def test_it_reaches_every_target(seed: int) -> None:
    environment = PointEnvironment("point")
    environment.reset(seed)
    for _ in range(environment.horizon):
        result = environment.step(script(environment.privileged()))
    assert result.success


def test_the_expert_as_an_agent_and_as_a_policy() -> None:
    environment = PointEnvironment("point")
    state = at(environment, 4)
    alone, policy = expert.expert(environment), expert.expert_policy(environment)
    np.testing.assert_array_equal(alone.action(), script(state))
    assert alone.subtask == "touch the blue cube" == expert.true_subtask(environment)()
    assert isinstance(policy, Policy)
    told = policy.infer(Observation(4, {}, np.zeros(7, np.float32)), "touch the red cube")
    np.testing.assert_array_equal(told.actions, POINT.act(state, "touch the red cube")[None])
    assert told.start_step == 4 and not np.allclose(told.actions[0], script(state))
    unknown = policy.infer(Observation(4, {}, np.zeros(7, np.float32)), "touch the purple cube")
    np.testing.assert_array_equal(unknown.actions, hold()[None])

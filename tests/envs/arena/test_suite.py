"""The arena through our interface, on the real physics. Furniture and objects are put where a robot would."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import predimem.envs.arena
from predimem.core.interfaces import Environment
from predimem.core.types import StepResult
from predimem.envs.arena.scene.reading import rotation_6d
from predimem.envs.arena.suite import ArenaEnvironment

DRAWERS_TASK, SEED = "ButterInOccupiedDrawer", 3
HORIZON = 60


@pytest.fixture(scope="module")
def environment() -> Iterator[ArenaEnvironment]:
    env = predimem.envs.arena.make(DRAWERS_TASK, obs_mode="none", control_mode="pd_joint_pos", sim_backend="cpu")
    environment = ArenaEnvironment(env, camera_every=None, horizon=HORIZON)
    yield environment
    environment.close()


def hold(environment: ArenaEnvironment, steps: int = 1) -> StepResult:
    results = [environment.step(environment.hold_action(None)) for _ in range(steps)]
    return results[-1]


def set_drawer(simulation: Any, drawer: str, opening_m: float) -> None:
    cabinet = simulation.fixtures["cabinet"]
    qpos = cabinet.qpos.clone()
    qpos[:, [joint.name for joint in cabinet.active_joints].index(drawer)] = opening_m
    cabinet.set_qpos(qpos)
    cabinet.set_qvel(qpos * 0)


def put(simulation: Any, name: str, position_m: tuple[float, float, float]) -> None:
    import sapien

    simulation.objects[name].set_pose(sapien.Pose(list(position_m)))


def look_into_all_drawers(environment: ArenaEnvironment) -> StepResult:
    """The first six stages, and the occupied drawer opened again."""
    result = None
    for drawer in ("top_drawer", "middle_drawer", "bottom_drawer"):
        for opening_m in (0.17, 0.0):
            set_drawer(environment.simulation, drawer, opening_m)
            result = hold(environment)
    assert result is not None and result.info["stages_passed"] == 0  # nobody looked yet: no camera, not the end
    set_drawer(environment.simulation, environment.simulation.variant().start["cookies"], 0.17)
    return hold(environment)


def drop_into_drawer(environment: ArenaEnvironment, name: str) -> None:
    simulation = environment.simulation
    drawer = simulation.world().position_m[simulation.variant().start["cookies"]][0].tolist()
    cookies = simulation.world().position_m["cookies"][0].tolist()
    put(simulation, name, (cookies[0], 2 * drawer[1] - cookies[1], drawer[2] + 0.03))


def test_the_contract(environment: ArenaEnvironment) -> None:
    assert isinstance(environment, Environment)
    assert (environment.action_dim, environment.horizon, environment.control_hz) == (8, HORIZON, 20.0)
    observation = environment.reset(SEED)
    assert environment.instruction.startswith("Open and close the top")
    assert observation.images == {} and (observation.step, observation.time_s) == (0, 0.0)
    assert observation.state.shape == (17,) and observation.state.dtype == np.float32
    result = hold(environment)
    assert (result.observation.step, result.observation.time_s) == (1, 0.05)
    assert not (result.terminated or result.truncated or result.success)
    assert (result.info["stages_total"], result.info["stage_states"]) == (9, "." * 9)
    labels = str(result.info["stage_labels"]).splitlines()
    assert labels[:2] == ["open top drawer", "close the top drawer"] and len(labels) == 9
    assert all(isinstance(value, int | float | str | bool) for value in result.info.values())


def test_the_state_is_what_the_robot_feels(environment: ArenaEnvironment) -> None:
    observation = environment.reset(SEED)
    world = environment.simulation.world()
    np.testing.assert_array_equal(observation.state[:3], world.tcp_m[0])
    upwards = np.cross(observation.state[3:6], observation.state[6:9])  # the third column: the tool points down
    np.testing.assert_allclose(upwards, [0, 0, -1], atol=0.1)
    assert observation.state[9] == pytest.approx(0.08, abs=1e-3)
    np.testing.assert_array_equal(observation.state[10:], environment.simulation.agent.robot.get_qpos()[0, :7])


def test_a_rotation_is_two_columns_of_its_matrix() -> None:
    from scipy.spatial.transform import Rotation

    x, y, z, w = (rotation := Rotation.from_euler("xyz", [0.3, -1.1, 2.0])).as_quat()
    np.testing.assert_allclose(rotation_6d(np.array([w, x, y, z])), rotation.as_matrix()[:, :2].T.ravel(), atol=1e-12)


def test_the_seed_determines_everything(environment: ArenaEnvironment) -> None:
    generator = np.random.default_rng(0)
    actions = generator.normal(0.0, 0.3, (20, 8)).astype(np.float32) + environment.hold_action(None)

    def states(seed: int) -> np.ndarray:
        first = environment.reset(seed).state
        return np.stack([first, *(environment.step(action).observation.state for action in actions)])

    before, other, again = states(SEED), states(SEED + 1), states(SEED)
    np.testing.assert_array_equal(before, again)
    assert np.abs(before - other).max() > 1e-3


def test_the_end_of_the_time_is_a_failure_with_a_reason(environment: ArenaEnvironment) -> None:
    environment.reset(SEED)
    set_drawer(environment.simulation, "top_drawer", 0.17)
    result = hold(environment, HORIZON - 1)
    assert not result.truncated and result.info["failure"] == ""
    result = hold(environment)
    assert result.truncated and not result.terminated and not result.success
    assert result.info["failure"] == "out of time: close the top drawer"
    assert (result.info["stages_passed"], result.info["stage_states"]) == (1, "+x.......")


def test_success_ends_the_episode(environment: ArenaEnvironment) -> None:
    environment.reset(SEED)
    look_into_all_drawers(environment)
    drop_into_drawer(environment, "butter")
    hold(environment, 12)
    set_drawer(environment.simulation, environment.simulation.variant().start["cookies"], 0.0)
    result = hold(environment, 2)
    assert result.success and result.terminated and not result.truncated
    assert (result.info["stages_passed"], result.info["failure"]) == (9, "")


def test_a_stage_that_was_undone_does_not_count(environment: ArenaEnvironment) -> None:
    environment.reset(SEED)
    look_into_all_drawers(environment)
    drop_into_drawer(environment, "butter")
    hold(environment, 12)
    put(environment.simulation, "butter", (-0.2, 0.0, 0.05))
    set_drawer(environment.simulation, environment.simulation.variant().start["cookies"], 0.0)
    result = hold(environment, HORIZON - 19)
    assert result.truncated and not result.success
    assert (result.info["stages_passed"], result.info["stage_states"]) == (8, "+++++++-+")
    assert str(result.info["failure"]).startswith("undone: place butter into")


def test_a_lost_object_ends_the_episode(environment: ArenaEnvironment) -> None:
    environment.reset(SEED)
    hold(environment)
    put(environment.simulation, "butter", (-0.9, 0.0, -0.5))
    result = hold(environment)
    assert result.terminated and not result.success and not result.truncated
    assert result.info["failure"] == "an object fell off the table"
    assert result.info["stage_states"] == "x........"


def test_holding_keeps_the_arm_where_it_is(environment: ArenaEnvironment) -> None:
    before = environment.reset(SEED).state
    after = hold(environment, 10).observation.state
    np.testing.assert_allclose(after, before, atol=5e-3)
    last = np.array([*before[10:], -1.0], np.float32)
    np.testing.assert_array_equal(environment.hold_action(last), last)  # the gripper stays closed


def test_bad_input(environment: ArenaEnvironment) -> None:
    with pytest.raises(ValueError, match=r"seed in \[0, 2\*\*32\), got -1"):
        environment.reset(-1)
    environment.reset(SEED)
    for action in (np.zeros(7), np.full(8, np.nan)):
        with pytest.raises(ValueError, match="pd_joint_pos"):
            environment.step(action)
    result = environment.step(np.full(8, 100.0))
    assert result.info["clipped_actions"] == 1
    with pytest.raises(ValueError, match="1 control step or more, got 0"):
        ArenaEnvironment(environment._env, horizon=0)


def test_images_are_taken_only_so_often() -> None:
    env = predimem.envs.arena.make(
        10, obs_mode="none", control_mode="pd_ee_delta_pose", sim_backend="cpu", render_backend="auto", image_px=32
    )
    environment = ArenaEnvironment(env, camera_every=2, horizon=3)
    first = environment.reset(SEED)
    assert list(first.images) == ["agentview_rgb", "eye_in_hand_rgb"]
    assert {(i.shape, i.dtype.name) for i in first.images.values()} == {((32, 32, 3), "uint8")}
    assert all(image.std() > 5 for image in first.images.values())  # something can be seen
    assert environment.action_dim == 7
    hold_still = environment.hold_action(None)
    np.testing.assert_array_equal(hold_still, [0, 0, 0, 0, 0, 0, 1])
    np.testing.assert_array_equal(environment.hold_action(np.full(7, -1.0)), [0, 0, 0, 0, 0, 0, -1])
    seen = [environment.step(hold_still).observation.images for _ in range(3)]
    taken = [first.images, *seen]
    assert [after is before for before, after in pairwise(taken)] == [True, False, False]
    environment.close()

"""A hand that is turned upright, and along a cube, by the suite's own controller."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from predimem.envs.mikasa.families.gather_recall import GATHER_RECALL, PICK
from predimem.envs.mikasa.families.motion import hold
from predimem.envs.mikasa.families.posture import upright
from predimem.envs.mikasa.suite import MikasaEnvironment

pytestmark = pytest.mark.needs("suite")


@pytest.fixture(scope="module")
def environment() -> Iterator[MikasaEnvironment]:
    environment = MikasaEnvironment("GatherAndRecall1-VLA-v0", images=False)
    yield environment
    environment.close()


@pytest.mark.parametrize("turn", [(1, 0, 0), (0, -1, 0), (0, 0, 1), (0, 0, -1)])
def test_a_hand_that_was_turned_comes_upright_and_along_the_axes(
    environment: MikasaEnvironment, turn: tuple[int, int, int]
) -> None:
    environment.reset(3000)
    first = environment.true_state()
    action = hold()
    action[3:6] = turn
    for _ in range(6):
        environment.step(action)
    turned = environment.true_state()
    tilt = np.linalg.norm(turned["pointing"][:2])
    assert max(tilt, abs(turned["turn_rad"] - first["turn_rad"])) > 0.15
    for _ in range(12):
        state = environment.true_state()
        environment.step(upright(hold(), state, state["turn_rad"]))
    after = environment.true_state()
    assert np.linalg.norm(after["pointing"][:2]) < 0.05 and abs(after["turn_rad"]) < 0.05


def test_fingers_turn_along_a_cube_that_lies_askew_and_pick_it_up(environment: MikasaEnvironment) -> None:
    import sapien

    environment.reset(3001)
    cube = environment._env.unwrapped.cubes[0]
    askew = sapien.Pose(p=cube.pose.sp.p, q=[np.cos(0.35), 0.0, 0.0, np.sin(0.35)])
    cube.set_pose(askew)
    turn = environment.true_state()["turns_rad"][0]
    assert 0.6 < abs(turn) <= np.pi / 4
    for _ in range(60):
        state = environment.true_state()
        if GATHER_RECALL.subtask(state) != PICK:
            break
        environment.step(GATHER_RECALL.act(state, PICK))
    held = environment.true_state()
    assert GATHER_RECALL.subtask(held) != PICK and abs(held["turns_rad"][0]) < 0.35


def test_a_stretched_arm_leans_its_hand_outwards() -> None:
    near, far = (
        {"tcp_m": np.array([x, 0.0, 0.2]), "base_m": np.zeros(3), "pointing": np.array([0.0, 0.0, -1.0])}
        for x in (0.6, 0.84)
    )
    assert not upright(hold(), near)[3:6].any()
    assert upright(hold(), far)[4] > 0.9

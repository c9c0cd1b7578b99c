"""Relative actions, ALOHA's units, cameras that are missing, and openpi's own rounding."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from openpi_client.image_tools import resize_with_pad

from actor.aloha import AlohaActions, AlohaState, FromAlohaActions
from actor.normalize import Quantiles
from actor.robot_space import RobotSpace
from actor.transforms import Discretise, Normalise, ResizeWithPad, ToAbsolute, ToRelative, Unnormalise
from actor.weights import ActorConfig
from tests.actor.checkpoints import ARMS, CAMERAS, MODEL, RELATIVE

ROBOT = ActorConfig(MODEL, CAMERAS, state_dim=ARMS, action_dim=ARMS, relative_to_state=RELATIVE)


def test_relative_actions_count_from_the_state_and_grippers_do_not():
    state = np.arange(14, dtype=np.float32)[None]
    actions = np.ones((1, 50, 14), np.float32)
    relative = ToRelative(RELATIVE)(actions, state)
    assert relative[0, 7].tolist() == [1, 0, -1, -2, -3, -4, 1, -6, -7, -8, -9, -10, -11, 1]
    np.testing.assert_array_equal(ToAbsolute(RELATIVE)(relative, state), actions)
    other_order = ToRelative((None, 0))(np.zeros((2, 1, 2)), np.array([[5.0, 9.0], [6.0, 9.0]]))
    assert other_order.tolist() == [[[0, -5]], [[0, -6]]]


def test_aloha_grippers_and_signs():
    """Numbers computed by hand from the crank: travel 0.5 is 38.22 mm between the fingers' stops."""
    state = np.zeros(14)
    state[[1, 2, 8]], state[[6, 13]] = 0.5, (0.5, 1.0)
    got = AlohaState()(state)
    assert got[[1, 2, 8]].tolist() == [-0.5, -0.5, -0.5]
    opening = 0.03822
    angle = np.arcsin((0.022**2 + opening**2 - 0.036**2) / (2 * 0.022 * opening))
    np.testing.assert_allclose(got[6], (angle - 0.5476) / (1.6296 - 0.5476))
    actions = np.random.default_rng(0).uniform(-1, 1, (3, 50, 14))
    np.testing.assert_allclose(FromAlohaActions()(AlohaActions()(actions)), actions)
    command = AlohaActions()(np.zeros((1, 14)))
    np.testing.assert_allclose(command[0, [6, 13]], (0.5476 + 0.6213) / (1.4910 + 0.6213))


def test_both_together_are_undone_by_the_inverse():
    space = RobotSpace(dataclasses.replace(ROBOT, aloha_space=True))
    rng = np.random.default_rng(0)
    state, actions = rng.uniform(0.1, 0.9, (2, 14)), rng.uniform(-1, 1, (2, 50, 14))
    relative = space.to_model(actions, state)
    np.testing.assert_allclose(space.to_robot(relative, state), actions)
    np.testing.assert_allclose(relative[:, :, 1], -actions[:, :, 1] + state[:, 1:2])  # both are turned round first


def test_a_robot_without_either_is_left_alone():
    space, actions = RobotSpace(ActorConfig()), np.ones((1, 2, 7), np.float32)
    assert space.to_model(actions, np.ones((1, 7))) is actions and space.to_robot(actions, np.ones((1, 7))) is actions


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"relative_to_state": (0, 1)}, "relative_to_state has 2 entries, and there are 14 actions"),
        ({"relative_to_state": (14, *RELATIVE[1:])}, r"the state has the entries 0 to 13, got \[14\]"),
        ({"optional_cameras": ("cam_low",)}, r"optional_cameras are some of the cameras .*got \['cam_low'\]"),
        ({"aloha_space": True, "state_dim": 16}, "aloha_space needs a state and actions of 14 numbers"),
    ],
)
def test_a_robot_that_contradicts_itself(change: dict, message: str):
    with pytest.raises(ValueError, match=message):
        dataclasses.replace(ROBOT, **change)


def test_openpi_exact_states():
    """openpi's formula: (x - q01) / (q99 - q01 + 1e-6) * 2 - 1, then 256 bins without a lower bound."""
    quantiles = Quantiles(np.array([-1.0, 0.25, 0.0]), np.array([1.0, 0.25, 2.0]))
    values = np.array([[-3.0, 0.25, 2.0], [0.0, 0.25, 5.0]])
    exact = Normalise(quantiles, openpi_exact=True)(values)
    np.testing.assert_array_equal(exact, (values - [-1, 0.25, 0]) / ([2 + 1e-6, 1e-6, 2 + 1e-6]) * 2.0 - 1.0)
    assert Discretise(openpi_exact=True)(exact).tolist() == [[-1, 0, 255], [127, 0, 255]]
    assert Discretise()(Normalise(quantiles)(values)).tolist() == [[0, 128, 255], [128, 128, 255]]
    np.testing.assert_allclose(Unnormalise(quantiles, openpi_exact=True)(exact), values, atol=1e-6)


@pytest.mark.parametrize(
    "shape", [(720, 1280), (480, 640), (1080, 1920), (600, 337), (376, 672), (64, 128), (224, 224)]
)
def test_openpi_exact_images_are_those_of_openpis_client(shape: tuple[int, int]):
    image = np.random.default_rng(0).integers(0, 255, (*shape, 3), np.uint8)
    np.testing.assert_array_equal(ResizeWithPad(224, openpi_exact=True)(image), resize_with_pad(image, 224, 224))


def test_the_720p_row():
    image = np.full((720, 1280, 3), 255, np.uint8)
    rows = [int(ResizeWithPad(224, openpi_exact=exact)(image).any((1, 2)).sum()) for exact in (False, True)]
    assert rows == [125, 126]

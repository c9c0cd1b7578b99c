"""Grasps of made-up things: where they are, how they close, what they avoid."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from datagen.grasp.antipodal import AntipodalConfig, AntipodalDetector
from datagen.grasp.gripper import TIP_M
from datagen.grasp.types import Grasp, PointCloud
from tests.datagen.grasp.clouds import box, camera, in_world, moved, seen, table, turned

DOWN = np.array([0.0, 0.0, -1.0])


def detect(cloud: PointCloud, **config: object) -> list[Grasp]:
    return AntipodalDetector(replace(AntipodalConfig(), **config)).detect(cloud)  # type: ignore[arg-type]


def closing_rad(grasp: Grasp) -> float:
    """The direction of closing in the table's plane, modulo half a turn: in (-pi/2, pi/2]."""
    y = in_world(grasp)[1][:, 1]
    return (math.atan2(y[1], y[0]) + math.pi / 2) % math.pi - math.pi / 2


@pytest.mark.parametrize("yaw", [0.0, 0.3, 0.8, -0.6, -1.2])
def test_a_box_seen_from_one_side_is_held_across_its_narrow_side(yaw: float) -> None:
    best = detect(seen(box((0.022, 0.034, 0.05), yaw), table()))[0]
    tcp, rotation = in_world(best)
    assert np.abs(tcp[:2]).max() < 0.004
    assert tcp[2] == pytest.approx(0.10 - 0.025, abs=0.003)
    assert rotation[:, 0] @ DOWN == pytest.approx(1.0)
    assert abs((closing_rad(best) - yaw + math.pi / 2) % math.pi - math.pi / 2) < 0.12
    assert best.width_m == pytest.approx(0.044, abs=0.004)
    assert best.depth_m == pytest.approx(0.025)
    assert best.score > 0.8


def test_a_can_is_held_across_its_middle() -> None:
    can = turned([(0.025, 0.0), (0.025, 0.09), (0.0, 0.09)])
    best = detect(seen(can, table()))[0]
    assert np.abs(in_world(best)[0][:2]).max() < 0.004
    assert best.width_m == pytest.approx(0.05, abs=0.004)
    assert best.score > 0.8


@pytest.mark.parametrize("yaw", [0.0, 1.0, 2.5])
def test_a_can_that_fell_over_is_held_across_its_axis(yaw: float) -> None:
    can = turned([(0.0, 0.0), (0.025, 0.0), (0.025, 0.09), (0.0, 0.09)])
    over = np.array([[0.0, 0.0, 1.0], [0.0, 1.0, 0.0], [-1.0, 0.0, 0.0]])
    lying = np.hstack([can[:, :3] @ over.T + [-0.045, 0.0, 0.025], can[:, 3:] @ over.T])
    best = detect(seen(moved(lying, (0.0, 0.0, 0.0), yaw), table()))[0]
    assert np.linalg.norm(in_world(best)[0] - [0.0, 0.0, 0.025]) < 0.005
    assert abs(math.sin(closing_rad(best) - yaw)) > math.cos(0.12)


def test_a_bottle_is_held_where_its_sides_are_straight() -> None:
    """Its top 2 cm are a neck; below, shoulders at 45 degrees."""
    bottle = turned([(0.022, 0.0), (0.022, 0.07), (0.009, 0.083), (0.009, 0.12), (0.0, 0.12)])
    best = detect(seen(bottle, table(), everything=True))[0]
    assert in_world(best)[0][2] - TIP_M > 0.083
    assert best.width_m == pytest.approx(0.018, abs=0.004)


def test_grasps_are_poses_of_the_gripper_best_first() -> None:
    grasps = detect(seen(box((0.022, 0.034, 0.02)), table()))
    assert len(grasps) > 1
    scores = [grasp.score for grasp in grasps]
    assert scores == sorted(scores, reverse=True)
    assert all(0.0 < score <= 1.0 for score in scores)
    for grasp in grasps:
        np.testing.assert_allclose(grasp.rotation.T @ grasp.rotation, np.eye(3), atol=1e-9)
        np.testing.assert_allclose(
            np.cross(grasp.rotation[:, 0], grasp.rotation[:, 1]), grasp.rotation[:, 2], atol=1e-9
        )


def test_the_same_cloud_gives_the_same_grasps() -> None:
    cloud = seen(box((0.022, 0.034, 0.02), 0.4), table())
    grasps = detect(cloud)
    assert grasps
    for one, other in zip(grasps, detect(cloud), strict=True):
        assert np.array_equal(one.translation_m, other.translation_m)
        assert np.array_equal(one.rotation, other.rotation)
        assert one.score == other.score


def test_how_the_camera_is_held_does_not_matter() -> None:
    thing = (box((0.022, 0.034, 0.03), 0.4), table())
    upright, rolled = detect(seen(*thing))[0], detect(seen(*thing, spin_rad=2.0))[0]
    assert camera(2.0) != pytest.approx(camera())
    (tcp, rotation), (other_tcp, other) = in_world(upright), in_world(rolled, 2.0)
    np.testing.assert_allclose(tcp, other_tcp, atol=0.004)
    assert abs(rotation[:, 1] @ other[:, 1]) > math.cos(0.15)


@pytest.mark.parametrize("half_height", [0.010, 0.017, 0.030])
def test_the_fingers_stay_off_the_table(half_height: float) -> None:
    grasps = detect(seen(box((0.02, 0.035, half_height)), table()))
    assert grasps
    for grasp in grasps:
        assert in_world(grasp)[0][2] - TIP_M > 0.003


def test_a_thing_of_which_only_the_top_is_seen_stands_on_what_is_around_it() -> None:
    best = detect(seen(box((0.02, 0.035, 0.025), faces="+z"), table()))[0]
    assert in_world(best)[0][2] == pytest.approx(0.025, abs=0.004)


def test_too_wide_things_are_left() -> None:
    assert detect(seen(box((0.045, 0.045, 0.03)), table())) == []


def test_slopes_are_left() -> None:
    """A flat cone: wherever the fingers close, they slip off."""
    assert detect(seen(turned([(0.034, 0.0), (0.0, 0.02)]), table(), everything=True)) == []
    assert detect(seen(turned([(0.034, 0.0), (0.028, 0.04), (0.0, 0.04)]), table(), everything=True))


def test_the_fingers_keep_clear_of_neighbours() -> None:
    """Alone it is held across x; with things close by on both sides there, across y."""
    thing = box((0.024, 0.028, 0.03))
    assert abs(closing_rad(detect(seen(thing, table()))[0])) < 0.1
    beside = [moved(box((0.02, 0.03, 0.03)), (side * 0.066, 0.0, 0.0)) for side in (-1, 1)]
    held = detect(seen(thing, *beside, table(), everything=True))
    assert held
    assert abs(closing_rad(held[0])) > 1.4


def test_the_palm_keeps_clear_of_what_is_higher() -> None:
    """A board behind the thing: the palm, 21 cm long in the direction of closing, has to be parallel to it."""
    thing = box((0.024, 0.024, 0.03))
    board = moved(box((0.005, 0.2, 0.10)), (0.06, 0.0, 0.0))
    grasps = detect(seen(thing, board, table(), everything=True))
    assert grasps
    for grasp in grasps:
        assert abs(closing_rad(grasp)) > 1.2


def test_it_tilts_only_where_straight_down_is_not_good() -> None:
    """A roof over a part of the thing leaves the palm too little room to come straight down."""
    thing = box((0.02, 0.045, 0.03))
    roof = moved(box((0.15, 0.01, 0.02), faces="-z+y"), (0.0, -0.040, 0.075))
    free = detect(seen(thing, table()), offsets_m=(0.0,))
    assert all(in_world(grasp)[1][:, 0] @ DOWN > 0.999 for grasp in free)
    covered = seen(thing, roof, table(), everything=True)
    tilted = detect(covered, offsets_m=(0.0,))
    assert tilted
    for grasp in tilted:
        approach = in_world(grasp)[1][:, 0]
        assert approach @ DOWN == pytest.approx(math.cos(0.25), abs=1e-6)
        assert approach[1] < 0  # the gripper leans away from the roof
    assert detect(covered, offsets_m=(0.0,), tilts_rad=()) == []


def test_a_stray_point_is_forgiven_at_a_price() -> None:
    """One wrong point of a depth camera where the palm goes; three are a thing."""
    thing, above = box((0.022, 0.022, 0.03)), np.array([[0.0, 0.0, 0.11, 0.0, 0.0, 1.0]])
    free = detect(seen(thing, table()))[0].score
    strayed = detect(seen(thing, above, table()))[0].score
    assert 0.5 * free < strayed < 0.7 * free
    lid = above + [[0.0, y, 0.0, 0.0, 0.0, 0.0] for y in (-0.008, 0.0, 0.008)]
    assert detect(seen(thing, lid, table()), tilts_rad=()) == []


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"max_width_m": 0.2}, "max_width_m"),
        ({"directions": 0}, "directions"),
        ({"depths": ()}, "depths"),
    ],
)
def test_settings_that_cannot_be(wrong: dict[str, object], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        replace(AntipodalConfig(), **wrong)  # type: ignore[arg-type]

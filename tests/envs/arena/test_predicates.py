"""Every condition in both directions: just inside and just outside each of its thresholds.

World 0 is inside, world 1 outside, so that a predicate that mixes worlds up fails too.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
import torch
from transforms3d.quaternions import quat2mat

from predimem.envs.arena.fixtures import DRAWERS, JOINTS, PLACES, POUR_RADIUS_M, POUR_TOP_M
from predimem.envs.arena.objects import OBJECTS
from predimem.envs.arena.predicates import Closed, Held, Inside, Opened, Placed, Poured, Pouring, Predicate
from predimem.envs.arena.world import World
from tests.envs.arena.worlds import made, turned

MM = 0.001
AXES = [(1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (1.0, -2.0, 0.5), (0.3, 0.2, 1.0)]
FRAME_M, FRAME_YAW_DEG = (0.3, -0.2, 0.1), 35.0


def answers(predicate: Predicate, world: World) -> list[bool]:
    got = predicate(world)
    assert got.dtype == torch.bool
    return got.tolist()


# ---- the geometry that they rest on, against plain matrices


@pytest.mark.parametrize("name", OBJECTS)
def test_lowest_point_axis_and_mouth_of_a_turned_object(name: str) -> None:
    spec = OBJECTS[name]
    quaternions = np.array([turned(17.0 * k, axis) for k, axis in enumerate(AXES * 4)])
    world = made(len(quaternions), {name: [0.1, 0.2, 0.5]}, {name: quaternions.tolist()})
    a, b, c = spec.half_m
    if spec.shape == "box":
        surface = np.array([[x, y, z] for x in (-a, a) for y in (-b, b) for z in (-c, c)])
    else:
        angles = np.linspace(0, 2 * np.pi, 3600)
        surface = np.array([[a * np.cos(t), a * np.sin(t), z] for t in angles for z in (-c, c)])
    matrices = [quat2mat(q) for q in quaternions]
    lowest = [0.5 + (surface @ m.T)[:, 2].min() for m in matrices]
    np.testing.assert_allclose(world.bottom_m(name), lowest, atol=1e-6)
    np.testing.assert_allclose(world.up(name), [m[:, 2] for m in matrices], atol=1e-6)
    np.testing.assert_allclose(world.upright(name), [m[2, 2] for m in matrices], atol=1e-6)
    np.testing.assert_allclose(world.mouth_m(name), [[0.1, 0.2, 0.5] + c * m[:, 2] for m in matrices], atol=1e-6)


# ---- held


@pytest.mark.parametrize("rest_m", [0.0, 0.13])
def test_held_needs_five_centimetres_above_where_it_rested(rest_m: float) -> None:
    half = OBJECTS["butter"].half_height_m
    height = [[0.0, 0.0, rest_m + half + 0.05 + d] for d in (MM, -MM)]
    world = made(2, {"butter": height}, rest_bottom={"butter": rest_m}, tcp=height)
    assert answers(Held("butter"), world) == [True, False]


def test_held_is_lifted_by_its_lowest_point() -> None:
    """The same centre: upright the milk reaches down 5 cm, on its side 2.4 cm."""
    centre = [0.0, 0.0, 0.09]
    rotation = [turned(90.0, (1.0, 0.0, 0.0)), turned(0.0)]
    assert answers(Held("milk"), made(2, {"milk": centre}, {"milk": rotation}, tcp=centre)) == [True, False]


@pytest.mark.parametrize("direction", [(1, 0, 0), (0, -1, 0), (0, 0, 1)])
def test_held_is_at_most_six_centimetres_from_the_tcp(direction: tuple[int, int, int]) -> None:
    tcp = [np.add([0, 0, 0.4], np.multiply(direction, 0.06 + d)).tolist() for d in (-MM, MM)]
    assert answers(Held("butter"), made(2, {"butter": [0.0, 0.0, 0.4]}, tcp=tcp)) == [True, False]


def test_held_is_near_and_lifted_in_the_same_world() -> None:
    """Both; in the gripper but on the table; lifted by something else; neither."""
    low, high, away = [0.0, 0.0, 0.02], [0.0, 0.0, 0.2], [0.3, 0.0, 0.2]
    world = made(4, {"butter": [high, low, high, low]}, tcp=[high, low, away, away])
    assert answers(Held("butter"), world) == [True, False, False, False]


# ---- inside, placed


def in_place(place: str, offsets_m: Sequence[tuple[float, float, float]], name: str = "butter") -> World:
    """One world for each offset of the object's lowest point from the middle of the place's floor.

    The place's frame is moved and turned.
    """
    spec = PLACES[place]
    turn = quat2mat(turned(FRAME_YAW_DEG))
    points = [FRAME_M + turn @ np.add(spec.centre_m, offset) for offset in offsets_m]
    positions = [np.add(p, [0, 0, OBJECTS[name].half_height_m]).tolist() for p in points]
    return made(len(points), {spec.frame: FRAME_M, name: positions}, {spec.frame: turned(FRAME_YAW_DEG)})


@pytest.mark.parametrize("place", PLACES)
def test_inside_ends_at_the_edge_of_the_floor(place: str) -> None:
    a, b = PLACES[place].half_m
    if PLACES[place].round:
        assert a == b
        edges = [(math.cos(t), math.sin(t)) for t in (0.0, 0.8, 2.5, 4.0)]
        offsets = [((a + d) * x, (a + d) * y, 0.002) for x, y in edges for d in (-MM, MM)]
    else:
        edges = [(1, 0), (-1, 0), (0, 1), (0, -1), (1, 1), (-1, 1)]  # also the corners
        offsets = [(x * (a + d), y * (b + d), 0.002) for x, y in edges for d in (-MM, MM)]
    assert answers(Inside("butter", place), in_place(place, offsets)) == [True, False] * len(edges)


@pytest.mark.parametrize("place", PLACES)
def test_inside_is_close_above_the_floor(place: str) -> None:
    clearance = PLACES[place].clearance_m
    heights = [clearance - MM, clearance + MM, -0.01 + MM, -0.01 - MM]
    world = in_place(place, [(0.0, 0.0, z) for z in heights])
    assert answers(Inside("butter", place), world) == [True, False, True, False]


def test_inside_goes_by_the_lowest_point_of_a_tilted_object() -> None:
    """A bottle whose centre is 6 cm above the plate: 6 cm long, it stands on it, on its side it is in the air."""
    z = FRAME_M[2] + PLACES["plate_left"].centre_m[2] + 0.06
    rotation = {"plate_left": turned(0.0), "wine_bottle": [turned(5.0, (1.0, 0.0, 0.0)), turned(90.0, (1.0, 0.0, 0.0))]}
    world = made(2, {"plate_left": FRAME_M, "wine_bottle": [FRAME_M[0], FRAME_M[1], z]}, rotation)
    assert answers(Inside("wine_bottle", "plate_left"), world) == [True, False]


def test_what_stands_in_a_fixture_is_not_on_the_table() -> None:
    for name in ("basket_left", "frying_pan", "plate_left", "drainer", "shelf_left"):
        bottom = PLACES[name].centre_m[2]
        z = OBJECTS["butter"].half_height_m
        world = made(2, {"table": [0.0, 0.0, 0.0], "butter": [[0.0, 0.0, z], [0.0, 0.0, z + bottom]]})
        assert answers(Inside("butter", "table"), world) == [True, False], name


@pytest.mark.parametrize("whole", [*DRAWERS, "microwave"])
def test_the_halves_of_a_place_share_it_out(whole: str) -> None:
    """The robot's left is +y. Every point of the whole is in just one half, but for the line between."""
    a, b = PLACES[whole].half_m
    offsets = [(x * a, y * b, 0.002) for x in (-0.9, 0.3) for y in (-0.98, -0.5, -0.02, 0.02, 0.5, 0.98)]
    world = in_place(whole, offsets)
    left, right = Inside("butter", f"{whole}_left")(world), Inside("butter", f"{whole}_right")(world)
    assert Inside("butter", whole)(world).all()
    assert left.tolist() == [y > 0 for _, y, _ in offsets]
    assert torch.equal(right, ~left)


def test_placed_is_let_go_of() -> None:
    world = in_place("basket_left", [(0.0, 0.0, 0.0)] * 2)
    above = world.position_m["butter"] + torch.tensor([[0.0, 0.0, 0.09 + MM], [0.0, 0.0, 0.09 - MM]])
    world.tcp_m[:] = above
    assert answers(Placed("butter", "basket_left"), world) == [True, False]


def test_placed_is_at_rest() -> None:
    world = in_place("basket_left", [(0.0, 0.0, 0.0)] * 2)
    world.speed_m_s["butter"][:] = torch.tensor([0.049, 0.051])
    assert answers(Placed("butter", "basket_left"), world) == [True, False]


def test_placed_is_inside() -> None:
    edge = PLACES["basket_left"].half_m[0]
    world = in_place("basket_left", [(edge - MM, 0.0, 0.0), (edge + MM, 0.0, 0.0)])
    assert answers(Placed("butter", "basket_left"), world) == [True, False]
    assert Placed("butter", "basket_left").lasting() == Inside("butter", "basket_left")


def test_placed_is_all_of_it_in_the_same_world() -> None:
    """All; in the gripper; beside the place; high above it; moving; standing beside the place in the gripper."""
    offsets = [(0.0, 0.0, 0.0), (0.0, 0.0, 0.0), (0.5, 0.0, 0.0), (0.0, 0.0, 0.3), (0.0, 0.0, 0.0), (0.5, 0.0, 0.0)]
    world = in_place("basket_left", offsets)
    for i in (1, 5):
        world.tcp_m[i] = world.position_m["butter"][i]
    world.speed_m_s["butter"][4] = 0.2
    assert answers(Inside("butter", "basket_left"), world) == [True, True, False, False, True, False]
    assert answers(Placed("butter", "basket_left"), world) == [True, False, False, False, False, False]


@pytest.mark.parametrize("axis", AXES[:2])
def test_a_bottle_that_has_to_stand_leans_by_less_than_30_degrees(axis: tuple[float, float, float]) -> None:
    world = in_place("drainer", [(0.0, 0.0, 0.015)] * 2, "milk")
    world.rotation["milk"][:] = torch.tensor([turned(29.5, axis), turned(30.5, axis)])
    assert answers(Placed("milk", "drainer", upright=True), world) == [True, False]
    assert answers(Placed("milk", "drainer"), world) == [True, True]


# ---- opened, closed


@pytest.mark.parametrize("joint", JOINTS)
def test_opened_and_closed(joint: str) -> None:
    opened, closed, step = (1.5, 0.06, 0.01) if joint == "microwave" else (0.16, 0.015, MM)
    values = [opened + step, opened - step, closed + step, closed - step]
    world = made(4, {}, joint={joint: values})
    assert answers(Opened(joint), world) == [True, False, False, False]
    assert answers(Closed(joint), world) == [False, False, False, True]
    assert Opened(joint).lasting() is None and Closed(joint).lasting() == Closed(joint)


# ---- pouring


def bottle(target: str, mouths_m: Sequence[tuple[float, float, float]], tilts_deg: Sequence[float]) -> World:
    """One world for each: where the mouth is from the middle of the target's top, and how far it is tilted."""
    tilts = np.radians(tilts_deg)
    up = np.stack([np.zeros_like(tilts), -np.sin(tilts), np.cos(tilts)], axis=-1)
    top = np.add(FRAME_M, [0, 0, POUR_TOP_M[target]])
    centres = top + np.array(mouths_m) - OBJECTS["wine_bottle"].half_height_m * up
    rotation = {"wine_bottle": [turned(d, (1.0, 0.0, 0.0)) for d in tilts_deg]}
    return made(len(tilts), {target: FRAME_M, "wine_bottle": centres.tolist()}, rotation)


@pytest.mark.parametrize("target", POUR_RADIUS_M)
def test_pouring_has_the_mouth_over_the_target(target: str) -> None:
    r = POUR_RADIUS_M[target]
    mouths = [((r + d) * math.cos(t), (r + d) * math.sin(t), 0.1) for t in (0.0, 1.0, 3.0, 5.0) for d in (-MM, MM)]
    world = bottle(target, mouths, [100.0] * len(mouths))
    assert answers(Pouring("wine_bottle", target), world) == [True, False] * 4


@pytest.mark.parametrize("target", POUR_RADIUS_M)
def test_pouring_is_above_the_target_and_not_too_high(target: str) -> None:
    heights = [MM, -MM, 0.35 - MM, 0.35 + MM]
    world = bottle(target, [(0.0, 0.0, z) for z in heights], [100.0] * 4)
    assert answers(Pouring("wine_bottle", target), world) == [True, False, True, False]


def test_pouring_is_tilted_by_more_than_75_degrees_to_any_side() -> None:
    tilts = [75.5, 74.5, -75.5, -74.5, 179.0, 0.0]
    world = bottle("mug_red", [(0.0, 0.0, 0.1)] * 6, tilts)
    assert answers(Pouring("wine_bottle", "mug_red"), world) == [True, False, True, False, True, False]


def test_pouring_is_all_of_it_in_the_same_world() -> None:
    """All; upright; beside the target; below its top."""
    mouths = [(0.0, 0.0, 0.1), (0.0, 0.0, 0.1), (0.2, 0.0, 0.1), (0.0, 0.0, -0.05)]
    world = bottle("mug_red", mouths, [100.0, 10.0, 100.0, 100.0])
    assert answers(Pouring("wine_bottle", "mug_red"), world) == [True, False, False, False]


def test_poured_is_counted_and_upright_again() -> None:
    world = made(
        4,
        {"milk": [0.0, 0.0, 0.2]},
        {"milk": [turned(29.5, (1.0, 0.0, 0.0))] * 3 + [turned(30.5, (1.0, 0.0, 0.0))]},
        pours=[1, 2, 3, 2],
    )
    assert answers(Poured("milk", "mug_red", 2), world) == [False, True, True, False]

"""Where everything starts: drawn from the seed alone, apart from each other, inside where it should be."""

from __future__ import annotations

import math
from functools import cache
from itertools import combinations

import numpy as np
import pytest

from predimem.envs.arena import fixtures as f
from predimem.envs.arena.layout import Layout, draw_layout
from predimem.envs.arena.objects import OBJECTS
from predimem.envs.arena.predicates import Inside
from predimem.envs.arena.task import Task
from predimem.envs.arena.tasks import TASKS, task_of
from predimem.envs.arena.world import World
from tests.envs.arena.worlds import made, turned

SEEDS = range(60)
EVERY_TASK = pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
HANDLE_M = 0.06  # how far handles, the door, a mug's ear or a rim stand out, with some room

Box = tuple[float, float, float, float]  # x low, x high, y low, y high


@cache
def layouts(task_id: int) -> list[Layout]:
    return [draw_layout(task_of(task_id), seed) for seed in SEEDS]


def footprint(name: str) -> Box:
    """The ground that a fixture stands on, shut, from its origin."""
    kind = f.FIXTURES[name].kind
    pan, mug = f.PAN_RADIUS_M + 0.004, f.MUG_RADIUS_M + 0.004
    if kind == "cabinet":
        return (-HANDLE_M, f.CABINET.depth_m, -f.CABINET.width_m / 2, f.CABINET.width_m / 2)
    if kind == "microwave":
        return (-HANDLE_M, f.MICROWAVE.depth_m, -f.MICROWAVE.width_m / 2, f.MICROWAVE.width_m / 2)
    if kind == "frying_pan":
        return (-pan - 0.14, pan, -pan, pan)
    half = {
        "basket": (f.BASKET_HALF_M, f.BASKET_HALF_M),
        "drainer": f.DRAINER_HALF_M,
        "plate": (f.PLATE_RADIUS_M + 0.004, f.PLATE_RADIUS_M + 0.004),
        "mug": (mug, mug),
        "shelf": f.SHELF_HALF_M,
    }[kind]
    return (-half[0], half[0], -half[1], half[1])


def ground(layout: Layout, name: str) -> Box:
    (x, y, _), yaw = layout.fixtures[name]
    assert yaw == 0.0
    box = footprint(name)
    return (x + box[0], x + box[1], y + box[2], y + box[3])


def gap_m(box: Box, x: float, y: float) -> float:
    return math.hypot(max(box[0] - x, x - box[1], 0.0), max(box[2] - y, y - box[3], 0.0))


def reach_m(name: str) -> float:
    """The radius of the circle around an object, however it is turned on the table."""
    spec = OBJECTS[name]
    return spec.half_m[0] if spec.shape == "cylinder" else math.hypot(*spec.half_m[:2])


def started(task: Task, made_layouts: list[Layout]) -> World:
    """The layouts as a `World`, one world each."""
    position = {"table": [0.0, 0.0, 0.0]}
    for name in (*f.KITCHEN, *task.fixtures):
        position[name] = [layout.fixtures[name][0].tolist() for layout in made_layouts]
    for drawer in f.DRAWERS:
        height = [0.0, 0.0, f.CABINET.drawer_floor_m(drawer)]
        position[drawer] = (np.array(position["cabinet"]) + height).tolist()
    rotation = {}
    for name in task.objects:
        position[name] = [layout.objects[name][0].tolist() for layout in made_layouts]
        rotation[name] = [turned(math.degrees(layout.objects[name][1])) for layout in made_layouts]
    return made(len(made_layouts), position, rotation)


@EVERY_TASK
def test_the_same_seed_gives_the_same_layout(task: Task) -> None:
    for seed in (0, 7, 900_000):
        one, two = draw_layout(task, seed), draw_layout(task, seed)
        assert one.variant == two.variant
        np.testing.assert_array_equal(one.qpos, two.qpos)
        for first, second in zip(
            (one.fixtures, one.mats, one.objects), (two.fixtures, two.mats, two.objects), strict=True
        ):
            assert list(first) == list(second)
            for name, (position, yaw) in first.items():
                np.testing.assert_array_equal(position, second[name][0])
                assert yaw == second[name][1]


@EVERY_TASK
def test_seeds_draw_every_variant_and_other_positions(task: Task) -> None:
    drawn = layouts(task.task_id)
    counts = np.bincount([layout.variant for layout in drawn], minlength=len(task.variants))
    assert len(counts) == len(task.variants)
    assert counts.min() >= 0.4 * len(SEEDS) / len(task.variants)
    for name in task.objects:
        assert len({tuple(layout.objects[name][0]) for layout in drawn}) == len(SEEDS)


def test_tasks_do_not_share_their_draws() -> None:
    """The same seed in two tasks of one shape: neither the hidden state nor the positions go together."""
    one, two = layouts(20), layouts(21)
    agree = sum(a.variant == b.variant for a, b in zip(one, two, strict=True))
    assert 0.25 * len(SEEDS) < agree < 0.75 * len(SEEDS)
    assert not any(np.array_equal(a.qpos, b.qpos) for a, b in zip(one, two, strict=True))


@EVERY_TASK
def test_objects_start_in_the_place_that_the_variant_says_and_in_no_other(task: Task) -> None:
    drawn = layouts(task.task_id)
    world = started(task, drawn)
    places = [p for p, spec in f.PLACES.items() if spec.frame in world.position_m]
    for name in task.objects:
        inside = {place: Inside(name, place)(world).tolist() for place in places}
        for i, layout in enumerate(drawn):
            start = task.variants[layout.variant].start.get(name, "table")
            found = {place for place in places if inside[place][i]}
            halves = {p for p in found if p in (f"{start}_left", f"{start}_right")}
            assert found - halves == {start}, f"{name} with seed {SEEDS[i]}"


@EVERY_TASK
def test_objects_keep_their_distance(task: Task) -> None:
    for seed, layout in zip(SEEDS, layouts(task.task_id), strict=True):
        start = task.variants[layout.variant].start
        for a, b in combinations(task.objects, 2):
            between = np.linalg.norm(layout.objects[a][0] - layout.objects[b][0])
            if a not in start and b not in start:
                assert between >= f.SPAWN_SPACING_M, f"{a} and {b} with seed {seed}"
            elif start.get(a) == start.get(b):  # in one place, nearly parallel: width and width
                assert between > 1.1 * (OBJECTS[a].half_m[0] + OBJECTS[b].half_m[0]), f"{a} and {b} with seed {seed}"


@EVERY_TASK
def test_objects_on_the_table_stand_clear_of_the_furniture(task: Task) -> None:
    """Also of drawers that are pulled out."""
    for seed, layout in zip(SEEDS, layouts(task.task_id), strict=True):
        boxes = {name: ground(layout, name) for name in layout.fixtures}
        low, high, right, left = boxes["cabinet"]
        boxes["open drawers"] = (low - f.CABINET.travel_m, high, right, left)
        for name in set(task.objects) - set(task.variants[layout.variant].start):
            x, y, _ = layout.objects[name][0]
            for fixture, box in boxes.items():
                assert gap_m(box, x, y) > reach_m(name), f"{name} and {fixture} with seed {seed}"


@EVERY_TASK
def test_furniture_stands_apart(task: Task) -> None:
    for seed, layout in zip(SEEDS, layouts(task.task_id), strict=True):
        for a, b in combinations(layout.fixtures, 2):
            one, two = ground(layout, a), ground(layout, b)
            apart = max(one[0] - two[1], two[0] - one[1], one[2] - two[3], two[2] - one[3])
            assert apart > 0.0, f"{a} and {b} with seed {seed}"


@EVERY_TASK
def test_mats_lie_in_the_place_that_they_mark(task: Task) -> None:
    for layout in layouts(task.task_id):
        chosen = task.variants[layout.variant]
        assert tuple(layout.mats) == chosen.mats
        for place, (position, _) in layout.mats.items():
            spec = f.PLACES[place]
            name = "cabinet" if spec.frame in f.DRAWERS else spec.frame
            offset = position - layout.fixtures[name][0] - spec.centre_m
            assert abs(offset[0]) < spec.half_m[0] and abs(offset[1]) < spec.half_m[1]


def test_the_robot_starts_near_its_rest_with_open_fingers() -> None:
    qpos = np.stack([layout.qpos for layout in layouts(4)])
    assert qpos.shape == (len(SEEDS), 9)
    assert np.abs(qpos[:, :7] - f.REST_QPOS_RAD).max() < 0.1
    assert 0.015 < np.std(qpos[:, :7] - f.REST_QPOS_RAD) < 0.025
    assert (qpos[:, 7:] == 0.04).all()

"""Where everything stands at a reset: drawn from the seed of the episode alone, with NumPy."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from predimem.envs.arena import fixtures as f
from predimem.envs.arena.objects import OBJECTS
from predimem.envs.arena.task import Task, Variant

Pose = tuple[np.ndarray, float]  # position [3] in metres, yaw in rad


@dataclass(frozen=True, eq=False)
class Layout:
    """How one world starts. All drawers and doors are shut.

    poses: of fixtures, mats (by their place) and objects.
    variant: the index into the task's variants.
    qpos: float64 [9], the joints of the robot.
    """

    variant: int
    fixtures: dict[str, Pose]
    mats: dict[str, Pose]
    objects: dict[str, Pose]
    qpos: np.ndarray


def draw_layout(task: Task, seed: int) -> Layout:
    """The same (task, seed) always gives the same layout, in every process and for any number of worlds."""
    rng = np.random.default_rng([seed, task.task_id])
    variant = int(rng.integers(len(task.variants)))
    fixtures = {name: _fixture_pose(name, rng) for name in (*f.KITCHEN, *task.fixtures)}
    chosen = task.variants[variant]
    mats = {place: (place_point_m(place, fixtures, f.mat_offset_m(place)), 0.0) for place in chosen.mats}
    qpos = np.array([*f.REST_QPOS_RAD, 0.04, 0.04])
    qpos[:7] += rng.normal(0.0, 0.02, 7)
    return Layout(variant, fixtures, mats, _object_poses(task, chosen, fixtures, rng), qpos)


def place_point_m(place: str, fixtures: dict[str, Pose], offset_m: tuple[float, float]) -> np.ndarray:
    """[3]: a point on the floor of a place, `offset_m` (x, y) from its middle; drawers are shut."""
    spec = f.PLACES[place]
    origin = np.zeros(3)
    if spec.frame in f.DRAWERS:
        origin = fixtures["cabinet"][0] + [0.0, 0.0, f.CABINET.drawer_floor_m(spec.frame)]
    elif spec.frame != "table":
        origin = fixtures[spec.frame][0]
    return origin + np.add(spec.centre_m, [*offset_m, 0.0])


def _fixture_pose(name: str, rng: np.random.Generator) -> Pose:
    spec = f.FIXTURES[name]
    x, y = np.add(spec.position_m, rng.uniform(-spec.jitter_m, spec.jitter_m, 2))
    return np.array([x, y, 0.0]), 0.0


def _object_poses(task: Task, variant: Variant, fixtures: dict[str, Pose], rng: np.random.Generator) -> dict[str, Pose]:
    poses: dict[str, Pose] = {}
    used: dict[str, int] = {}
    on_table = [name for name in task.objects if name not in variant.start]
    for name, xy in zip(on_table, _spread(len(on_table), rng), strict=True):
        poses[name] = (np.array([*xy, OBJECTS[name].half_height_m + 0.001]), rng.uniform(-math.pi, math.pi))
    for name, place in variant.start.items():
        slots = f.PLACES[place].slots_m
        point = place_point_m(place, fixtures, slots[used.get(place, 0) % len(slots)])
        used[place] = used.get(place, 0) + 1
        point[2] += OBJECTS[name].half_height_m + 0.001
        poses[name] = (point, rng.uniform(-0.2, 0.2) + math.pi / 2)
    return poses


def _spread(n: int, rng: np.random.Generator) -> list[np.ndarray]:
    """n points on the table that keep their distance: rejection, begun afresh when it gets stuck."""
    points: list[np.ndarray] = []
    while len(points) < n:
        point = rng.uniform(f.SPAWN_LOW_M, f.SPAWN_HIGH_M)
        if all(np.linalg.norm(point - other) > f.SPAWN_SPACING_M for other in points):
            points.append(point)
        elif rng.random() < 0.02:
            points = []
    return points

"""What the cameras see: the same for the same state, different for different things, and cheap to build."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import Any

import numpy as np
import pytest
import sapien
import torch

from predimem.envs.arena import make
from predimem.envs.arena.objects import OBJECTS
from predimem.envs.arena.scene import textures as labels
from predimem.envs.arena.scene.furniture import HIDDEN_M, build_fixture
from predimem.envs.arena.scene.groceries import build_object
from predimem.rendering import maniskill as rendering
from tests.envs.arena.playing import hold_still, play, random_actions

NOWHERE = sapien.Pose(list(HIDDEN_M))
TWINS = [("plate_left", "plate_right"), ("basket_left", "basket_right"), ("shelf_left", "shelf_right")]


@pytest.fixture(scope="module")
def arm() -> Iterator[Any]:
    """Task 4 with every object and all twins, each built into its scene; none of these in view."""
    env: Any = make(4, obs_mode="none", render_backend="auto", image_px=128).unwrapped
    env.reset(seed=0)
    scene = env.scene
    things = {name: env.objects.get(name) or build_object(scene, name) for name in OBJECTS}
    things |= {name: build_fixture(scene, name) for pair in TWINS for name in pair}
    for thing in things.values():
        thing.set_pose(NOWHERE)
    env.things = things
    yield env
    env.close()


def image(env: Any, camera: str = "agentview_rgb") -> np.ndarray:
    return env.observe()[camera]["rgb"][0].numpy()


def triangles(env: Any) -> int:
    """Of the robot."""
    from sapien.render import RenderBodyComponent

    links = [link._objs[0].entity for link in env.agent.robot.links]
    bodies = [c for link in links for c in link.components if isinstance(c, RenderBodyComponent)]
    return sum(len(part.triangles) for body in bodies for shape in body.render_shapes for part in shape.parts)


def test_every_object_has_a_colour_of_its_own(arm: Any) -> None:
    grid = [(x, y) for x in (-0.28, -0.14, 0.0) for y in (-0.15, 0.0, 0.15)]
    for (x, y), name in zip(grid, OBJECTS, strict=True):
        arm.things[name].set_pose(sapien.Pose([x, y, OBJECTS[name].half_height_m]))
    seen = arm.observe("rgb+segmentation")["agentview_rgb"]
    ids, pixels = seen["segmentation"][0, ..., 0].numpy(), seen["rgb"][0].numpy().astype(float)
    means = {}
    for name in OBJECTS:
        mine = pixels[ids == int(arm.things[name].per_scene_id[0])]
        assert len(mine) >= 10, f"{name}: {len(mine)} pixels"
        means[name] = mine.mean(axis=0)
        arm.things[name].set_pose(NOWHERE)
    distances = {(a, b): np.linalg.norm(means[a] - means[b]) for a, b in combinations(OBJECTS, 2)}
    assert min(distances.values()) > 30, sorted(distances.items(), key=lambda item: item[1])[:3]


@pytest.mark.parametrize("pair", TWINS)
def test_twins_look_the_same(arm: Any, pair: tuple[str, str]) -> None:
    images = [image(arm)]
    for name in pair:
        arm.things[name].set_pose(sapien.Pose([-0.2, 0.0, 0.0]))
        images.append(image(arm))
        arm.things[name].set_pose(NOWHERE)
    np.testing.assert_array_equal(images[1], images[2])
    assert (images[0] != images[1]).any(axis=-1).sum() > 100


def test_a_closed_drawer_does_not_tell_what_it_holds(arm: Any) -> None:
    empty = image(arm)
    cabinet = arm.fixtures["cabinet"]
    drawer = cabinet.links_map["middle_drawer"].pose.p[0].numpy()
    arm.things["milk"].set_pose(sapien.Pose(drawer + np.array([0.08, 0.0, 0.034]), [0.70710678, 0.0, 0.70710678, 0.0]))
    np.testing.assert_array_equal(image(arm), empty)
    cabinet.set_qpos(torch.tensor([[0.0, 0.17, 0.0]]))
    opened = image(arm)
    arm.things["milk"].set_pose(NOWHERE)
    assert (opened != image(arm)).any(), "an open one does"
    cabinet.set_qpos(torch.zeros(1, 3))


def test_scenes_share_their_looks_and_no_scene_changes_them(arm: Any) -> None:
    before = image(arm)
    other = make(20, obs_mode="none", render_backend="auto", image_px=128).unwrapped
    image(other)
    other.reset(seed=1)
    other.close()
    np.testing.assert_array_equal(image(arm), before)


def test_the_same_seed_gives_the_same_pixels() -> None:
    env: Any = make(4, obs_mode="rgb", image_px=64)
    first, _ = env.reset(seed=5)
    play(env, [hold_still(env)] * 3)
    other, _ = env.reset(seed=6)
    again, _ = env.reset(seed=5)
    env.close()
    for camera, seen in first["sensor_data"].items():
        assert torch.equal(seen["rgb"], again["sensor_data"][camera]["rgb"])
        assert not torch.equal(seen["rgb"], other["sensor_data"][camera]["rgb"])


def test_looks_change_nothing_that_moves() -> None:
    states = []
    for backend, meshes in (("none", "light"), ("auto", "light"), ("auto", "stock")):
        env: Any = make(20, obs_mode="none", render_backend=backend, robot_meshes=meshes)
        env.reset(seed=2)
        states.append(play(env, random_actions(env, 50)))
        env.close()
    np.testing.assert_array_equal(states[0], states[1])
    np.testing.assert_array_equal(states[0], states[2])


def test_the_light_robot_is_made_once_and_looks_like_the_stock_one() -> None:
    images, counts = {}, {}
    for meshes in ("stock", "light"):
        env: Any = make(10, obs_mode="none", render_backend="auto", image_px=64, robot_meshes=meshes).unwrapped
        env.reset(seed=1)
        counts[meshes], images[meshes] = triangles(env), image(env).astype(int)
        made = len(rendering._LIGHTER)
        env.reset(seed=2)
        assert len(rendering._LIGHTER) == made and triangles(env) == counts[meshes]
        env.close()
    assert counts["stock"] > 100_000 and 1_000 < counts["light"] < 20_000
    assert 0 < abs(images["stock"] - images["light"]).mean() < 4


def test_unknown_robot_meshes_are_refused() -> None:
    with pytest.raises(ValueError, match="robot_meshes is one of light, stock, not 'coarse'"):
        make(4, robot_meshes="coarse")


def test_painted_images_are_reproducible_and_cannot_be_changed() -> None:
    for name in labels.PAINTERS:
        painted = labels.paint(name)
        assert painted.dtype == np.uint8 and painted.ndim == 3 and painted.shape[2] == 3
        np.testing.assert_array_equal(painted, labels.paint(name))
        assert not painted.flags.writeable

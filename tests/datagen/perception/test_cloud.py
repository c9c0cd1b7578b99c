"""Clouds from views: made-up ones, and the arena's cameras."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from datagen.perception.cloud import point_cloud
from datagen.perception.views import View, look

NAMES = {1: "table", 2: "cookies", 3: "panda_hand", 4: "mug_red"}


def view(camera: str, position_m: tuple[float, float, float], labels: list[list[int]]) -> View:
    """A camera that looks straight down from a height, x to the right, with 4 x 4 pixels."""
    height = position_m[2]
    return View(
        camera=camera,
        rgb=np.full((4, 4, 3), 7, np.uint8),
        depth_m=np.where(np.array(labels) == 0, 0.0, height),
        labels=np.array(labels),
        names=NAMES,
        intrinsics=np.array([[8.0, 0, 2], [0, 8.0, 2], [0, 0, 1]]),
        rotation=np.diag([1.0, -1.0, -1.0]),
        position_m=np.array(position_m),
    )


ONE = view("one", (0.1, 0.0, 0.5), [[1, 1, 1, 1], [1, 2, 2, 1], [1, 2, 3, 4], [0, 1, 1, 1]])
OTHER = view("other", (0.0, 0.05, 0.4), [[1, 1, 1, 1], [1, 1, 1, 1], [1, 1, 2, 2], [1, 1, 3, 3]])


def test_views_are_merged_in_the_frame_of_the_first() -> None:
    cloud, rotation, position = point_cloud([ONE, OTHER], "cookies")
    assert len(cloud.points_m) == (16 - 2) + (16 - 2)  # without the robot, and where nothing was seen
    assert cloud.target.sum() == 3 + 2
    np.testing.assert_allclose(rotation @ cloud.up, [0, 0, 1])
    world = cloud.points_m @ rotation.T + position
    assert np.abs(world[:, 2]).max() < 1e-12
    np.testing.assert_allclose(world[cloud.target][:3], ONE.world_m[ONE.mask("cookies")])
    np.testing.assert_allclose(world[cloud.target][3:], OTHER.world_m[OTHER.mask("cookies")])
    cameras = cloud.viewpoints_m @ rotation.T + position
    np.testing.assert_allclose(cameras[:14], np.tile(ONE.position_m, (14, 1)))
    np.testing.assert_allclose(cameras[14:], np.tile(OTHER.position_m, (14, 1)), atol=1e-12)


def test_the_first_view_need_not_see_the_target() -> None:
    cloud, _, position = point_cloud([view("blind", (0.0, 0.0, 0.5), [[1] * 4] * 4), OTHER], "cookies")
    assert cloud.target.sum() == 2
    assert np.array_equal(position, [0.0, 0.0, 0.5])


def test_more_can_be_left_out() -> None:
    assert len(point_cloud([ONE], "cookies")[0].points_m) == 14
    assert len(point_cloud([ONE], "cookies", exclude=("mug_red",))[0].points_m) == 13


def test_far_points_are_left_out() -> None:
    wide = view("wide", (0.0, 0.0, 4.0), [[2, 1, 1, 1], [1] * 4, [1] * 4, [1] * 4])
    assert len(point_cloud([wide], "cookies")[0].points_m) == 1


def test_what_cannot_be() -> None:
    with pytest.raises(ValueError, match=r"'milk' is in none of the views \(one, other\)"):
        point_cloud([ONE, OTHER], "milk")
    with pytest.raises(ValueError, match="one view or more"):
        point_cloud([], "milk")


def test_grasps_of_the_arena() -> None:
    """From both cameras of a real scene: grasps are at the things, within 4 mm, and close across them."""
    from datagen.grasp.antipodal import AntipodalDetector
    from predimem.envs.arena import make

    env: Any = make(1, obs_mode="none", render_backend="auto", depth_px=256).unwrapped
    env.reset(seed=3)
    views = look(env)
    for name in env.task.objects:
        cloud, rotation, position = point_cloud(views, name)
        best = AntipodalDetector().detect(cloud)[0]
        true = env.objects[name].pose.p[0].numpy()
        tcp = rotation @ best.translation_m + position
        assert np.linalg.norm((tcp - true)[:2]) < 0.004
        assert best.score > 0.7
        np.testing.assert_allclose(rotation @ best.rotation[:, 0], [0, 0, -1], atol=1e-6)
    env.close()

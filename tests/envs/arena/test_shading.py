"""What makes images cheap changes nothing that is seen: the shader pack, and leaving out what is out of view."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from mani_skill.sensors.camera import Camera

from predimem.envs.arena import make
from predimem.rendering import culling
from predimem.rendering import maniskill as rendering

EVERYTHING = "rgb+depth+segmentation+position+normal+albedo"


def arm_of(**options: Any) -> Any:
    env: Any = make(4, obs_mode="none", render_backend="auto", **options)
    env.reset(seed=0)
    return env.unwrapped


@pytest.fixture(scope="module")
def arm() -> Iterator[Any]:
    env = arm_of(image_px=96)
    yield env
    env.close()


def seen(env: Any, camera: str, mode: str = "rgb") -> dict[str, np.ndarray]:
    return {name: image[0].numpy() for name, image in env.observe(mode, [camera])[camera].items()}


@pytest.mark.parametrize("shadow", [False, True])
def test_the_shader_pack_draws_what_sapiens_default_draws(shadow: bool) -> None:
    options = {"image_px": 96, "enable_shadow": shadow}
    own, default = arm_of(**options), arm_of(**options, sensor_configs={"shader_pack": "default"})
    for camera in ("agentview_rgb", "eye_in_hand_rgb"):
        ours, theirs = seen(own, camera, EVERYTHING), seen(default, camera, EVERYTHING)
        assert ours.keys() == theirs.keys()
        for name in ("depth", "position", "segmentation"):
            assert ours[name].dtype == theirs[name].dtype
            np.testing.assert_array_equal(ours[name], theirs[name])
        np.testing.assert_allclose(ours["normal"], theirs["normal"], atol=1e-4)
        assert ours["rgb"].dtype == np.uint8
        off = np.abs(ours["rgb"].astype(int) - theirs["rgb"])
        if shadow:  # their edges are a little sharper
            assert off.mean() < 1.5 and np.quantile(off, 0.9) <= 1
        else:
            assert off.max() <= 1
    own.close()
    default.close()


def test_shadows_are_cast_where_they_are_wanted(arm: Any) -> None:
    shady = arm_of(image_px=96, enable_shadow=True)
    darker = seen(arm, "agentview_rgb")["rgb"].astype(int) - seen(shady, "agentview_rgb")["rgb"]
    assert (darker > 30).all(axis=-1).sum() > 100 and darker.min() >= -1
    shady.close()


def test_images_are_the_same_without_what_is_out_of_view(arm: Any) -> None:
    capture: Any = Camera.capture
    if not hasattr(capture, "stock"):
        pytest.skip("a GPU renders what is out of view, too")
    rng = np.random.default_rng(0)
    hidden = []
    for _ in range(12):
        bent = arm.agent.robot.qpos + torch.tensor(np.append(rng.normal(0, 0.4, 7), [0, 0]), dtype=torch.float32)
        arm.agent.reset(bent)
        for name in ("agentview_rgb", "eye_in_hand_rgb"):
            spared = seen(arm, name, "rgb+depth+segmentation")
            camera = arm._sensors[name]
            hidden.append({body.entity.name for body in culling.out_of_view(camera)})
            capture.stock(camera)
            stock = camera.get_obs(rgb=True, depth=True, segmentation=True, position=False)
            for texture, image in spared.items():
                np.testing.assert_array_equal(image, stock[texture][0].numpy())
    assert any("panda_link1" in names for names in hidden) and not all("scene-0_table" in names for names in hidden)
    arm.reset(seed=0)


def test_what_casts_shadows_is_never_left_out(arm: Any) -> None:
    assert culling.out_of_view(arm._sensors["eye_in_hand_rgb"])
    shady = arm_of(image_px=32, enable_shadow=True)
    assert culling.out_of_view(shady._sensors["eye_in_hand_rgb"]) == []
    shady.close()


def test_a_hidden_body_stays_hidden_after_a_image(arm: Any) -> None:
    bodies = culling.out_of_view(arm._sensors["eye_in_hand_rgb"])
    bodies[0].visibility = 0.0
    seen(arm, "eye_in_hand_rgb")
    assert bodies[0].visibility == 0.0 and bodies[1].visibility == 1.0
    bodies[0].visibility = 1.0


def test_flat_parts_of_a_mesh_get_larger_cells() -> None:
    x, y = (grid.ravel() for grid in np.meshgrid(np.arange(33) / 4, np.arange(33) / 4, indexing="ij"))
    k = np.arange(32 * 32) // 32 * 33 + np.arange(32 * 32) % 32
    triangles = np.concatenate([np.stack([k, k + 33, k + 1], 1), np.stack([k + 1, k + 33, k + 34], 1)])

    def vertices_left(height: np.ndarray) -> int:
        vertices, faces = rendering.cluster_vertices(np.stack([x, y, height], 1), triangles, 1.0, flat_m=0.05)
        assert faces.max() == len(vertices) - 1
        return len(vertices)

    flat = np.full_like(x, 0.5)
    assert vertices_left(flat) == 9  # (8 / 4 + 1) ** 2: the last row and column begin a cell of their own
    assert 9 < vertices_left(np.where(x < 3, 0.1, 0.9)) < 81  # a step
    assert len(rendering.cluster_vertices(np.stack([x, y, flat], 1), triangles, 1.0)[0]) == 81

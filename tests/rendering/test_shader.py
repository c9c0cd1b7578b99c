"""The lighter shader shows what SAPIEN's own does, to the last bit, and is what cameras use."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sapien

from predimem.envs.mikasa.suite import MikasaEnvironment
from predimem.rendering import maniskill, vulkan
from predimem.rendering.shader import changed

STOCK = Path(sapien.__file__).parent / "vulkan_shader" / "minimal"


def test_the_installed_shader_is_the_one_that_the_changes_are_for() -> None:
    for name in ("gbuffer.vert", "gbuffer.frag"):
        text = (STOCK / name).read_text()
        lighter = changed(name, text)
        assert lighter is not None and lighter != text
    assert changed("composite.vert", "anything") == "anything"


def test_another_shader_is_left_alone() -> None:
    assert changed("gbuffer.frag", "#version 460\nvoid main() {}\n") is None


@pytest.mark.slow
@pytest.mark.needs("suite", "vulkan")
@pytest.mark.parametrize("task", ["RememberColor9-VLA-v0", "RememberShape9-VLA-v0"])
def test_images_are_the_same_to_the_last_bit(task: str, monkeypatch: pytest.MonkeyPatch) -> None:
    maniskill.prepare()
    if vulkan.find_driver().kind == "gpu":
        pytest.skip("a GPU's driver keeps SAPIEN's own shader")
    from mani_skill.sensors import camera

    used: list[str] = []
    stock = camera.set_shader_pack.stock  # type: ignore[attr-defined]

    def unmended(config: Any) -> None:
        stock(config)

    unmended.mended = True  # type: ignore[attr-defined]  # so that it is left as it is
    monkeypatch.setattr(sapien.render, "set_camera_shader_dir", _noting(sapien.render.set_camera_shader_dir, used))
    shown = _images(task)
    assert any("predimem-shader-" in folder for folder in used)
    used.clear()
    monkeypatch.setattr(camera, "set_shader_pack", unmended)
    for ours, theirs in zip(shown, _images(task), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    assert set(used) == {"minimal"}


def _noting(function: Callable[[str], None], calls: list[str]) -> Callable[[str], None]:
    def noted(folder: str) -> None:
        calls.append(folder)
        function(folder)

    return noted


def _images(task: str) -> list[np.ndarray]:
    environment = MikasaEnvironment(task, "stock")
    environment.reset(900_000)
    action = np.array([1, 0.5, -1, 0, 0, 0, -1], np.float32)
    results = [environment.step(action) for _ in range(16)]
    environment.close()
    return [image for result in results[::5] for image in result.observation.images.values()]

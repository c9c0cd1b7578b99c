"""SAPIEN's shader `minimal`, which ManiSkill's cameras use, without the work that software drivers pay dearly for.

Three changes, none of which shows in an image of a scene without an environment map (as ManiSkill's are), to the last
bit: a fragment that something nearer hides is dropped before it is shaded (the stock shader may discard fragments, so
that drivers shade all of them), the black environment map is not looked up three times per fragment, and of a body's
pose only the rotation is inverted for each vertex. The files of the installed SAPIEN are read, changed and written to
a temporary folder. Where they are not as expected, because SAPIEN is another one, they are used as they are.
"""

from __future__ import annotations

import functools
import tempfile
from pathlib import Path
from typing import Any

_CHANGES = {
    "gbuffer.vert": (("mat3(transpose(inverse(modelView)))", "transpose(inverse(mat3(modelView)))"),),
    "gbuffer.frag": (
        ("#version 450\n", "#version 450\nlayout(early_fragment_tests) in;\n"),
        ("  color += diffuseIBL(", "  if (false) color += diffuseIBL("),
        ("  color += specularIBL(", "  if (false) color += specularIBL("),
        ("    discard;\n", ""),
    ),
}


def changed(name: str, text: str) -> str | None:
    """A shader's file with the changes; None where it is not as expected."""
    for before, after in _CHANGES.get(name, ()):
        if text.count(before) != 1:
            return None
        text = text.replace(before, after)
    return text


def patch_minimal_shader() -> None:
    """Let ManiSkill's cameras that are made from now on use the lighter shader. Idempotent."""
    from mani_skill.sensors import camera

    stock = camera.set_shader_pack
    if getattr(stock, "mended", False):
        return

    def set_shader_pack(config: Any) -> None:
        stock(config)
        folder = _folder() if config.shader_pack == "minimal" else None
        if folder is not None:
            import sapien.render

            sapien.render.set_camera_shader_dir(str(Path(folder.name) / "minimal"))

    set_shader_pack.mended = True  # type: ignore[attr-defined]
    set_shader_pack.stock = stock  # type: ignore[attr-defined]
    camera.set_shader_pack = set_shader_pack


@functools.cache
def _folder() -> tempfile.TemporaryDirectory[str] | None:
    """Holds `minimal/` beside SAPIEN's `common/`, until the process ends."""
    import sapien

    stock = Path(sapien.__file__).parent / "vulkan_shader"
    files = {path.name: changed(path.name, path.read_text()) for path in sorted((stock / "minimal").glob("*"))}
    if not set(_CHANGES) <= set(files) or None in files.values():
        return None
    folder = tempfile.TemporaryDirectory(prefix="predimem-shader-")
    (Path(folder.name) / "common").symlink_to(stock / "common")
    light = Path(folder.name) / "minimal"
    light.mkdir()
    for name, text in files.items():
        (light / name).write_text(text or "")
    return folder

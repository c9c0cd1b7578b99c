"""The arena's own shader pack, in `shaders/`: what SAPIEN's pack "default" draws here, for less than half its time.

Depth, positions and segmentation are the same to the last bit, colours within 1 of 255. The time goes into
what the arena has none of: transparent surfaces, points and lines, environment maps, lamps in places. The pack
ignores these, and also textures other than those of colour.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import sapien.render
from mani_skill.render import PREBUILT_SHADER_CONFIGS, ShaderConfig

FOLDER = Path(__file__).parent / "shaders"
IMAGE = "Picture"  # not "Color", whose format ManiSkill sets for the whole process, now to floats, now to bytes


def shader_config() -> ShaderConfig:
    """For `CameraConfig(shader_config=...)`: gives all that ManiSkill's "default" gives, in the same units."""
    sapien.render.set_picture_format(IMAGE, "r8g8b8a8unorm")
    default = PREBUILT_SHADER_CONFIGS["default"]
    names: dict[str, list[str]] = {**default.texture_names, IMAGE: ["rgb"]}
    transforms: dict[str, Any] = {**default.texture_transforms, IMAGE: lambda data: {"rgb": data[..., :3]}}
    del names["Color"], transforms["Color"]
    return ShaderConfig(shader_pack=str(FOLDER), texture_names=names, texture_transforms=transforms)

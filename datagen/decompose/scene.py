"""What a decomposition of an episode of the arena starts from: its instruction and the first image."""

from __future__ import annotations

import numpy as np

from predimem.envs.arena.layout import draw_layout
from predimem.envs.arena.task import Task, Variant

IMAGE_PX = 256


def instruction_of(task: Task, seed: int) -> str:
    """The instruction that the robot gets in the episode of a seed."""
    return variant_of(task, seed).instruction


def variant_of(task: Task, seed: int) -> Variant:
    """The variant of the task that a seed draws."""
    return task.variants[draw_layout(task, seed).variant]


def first_image(task: Task, seed: int, image_px: int = IMAGE_PX) -> np.ndarray:
    """What the camera `agentview_rgb` sees before the first step, as uint8 [image_px, image_px, 3].

    Raises `predimem.rendering.vulkan.VulkanError` where nothing can render.
    """
    from predimem.envs.arena.registration import create

    env = create(task=task, obs_mode="none", render_backend="auto", image_px=image_px, sim_backend="cpu")
    try:
        env.reset(seed=seed)
        return env.observe("rgb")["agentview_rgb"]["rgb"][0].cpu().numpy()
    finally:
        env.close()

"""What an environment renders with: chosen before SAPIEN looks for devices, or refused with a way out."""

from __future__ import annotations

from predimem.rendering import maniskill as rendering
from predimem.rendering import vulkan

BLIND_OBS_MODES = ("state", "state_dict", "none")


def render_backend(requested: str | None, obs_mode: str, render_mode: str | None) -> str:
    """ManiSkill's `render_backend` for an environment with these modes.

    requested: None renders where the modes need images, "auto" in any case, "none" never; anything else
    is passed on to ManiSkill. Without images no Vulkan driver is needed. Raises
    `predimem.rendering.vulkan.VulkanError` where there is nothing to render with, ValueError for "none" where
    images are wanted.
    """
    images = obs_mode not in BLIND_OBS_MODES or render_mode is not None
    if requested == "none" and images:
        raise ValueError(
            f"obs_mode {obs_mode!r} with render_mode {render_mode!r} needs images, which render_backend "
            f"'none' does not make: leave render_backend out, or take one of the obs_modes "
            f"{', '.join(BLIND_OBS_MODES)} and no render_mode"
        )
    blind = requested == "none" or (requested is None and not images)
    if blind and vulkan.find_driver().kind == "none":
        return "none"
    # SAPIEN lists the Vulkan devices once in a process: a driver is chosen even for an environment
    # without images, since a later one may want them.
    device = rendering.prepare()
    if blind:
        return "none"
    _check_listed(device)
    return device if requested in (None, "auto") else str(requested)


def _check_listed(device: str) -> None:
    import sapien

    try:
        sapien.Device(device)
    except RuntimeError as error:
        raise vulkan.VulkanError(
            f"SAPIEN knows no device {device!r}: something in this process made it list its devices before the "
            "Vulkan driver was chosen. Call predimem.rendering.maniskill.prepare() before the first ManiSkill "
            "environment; `predimem doctor` tells whether rendering works at all"
        ) from error

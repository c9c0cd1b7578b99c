"""Cameras that take images only when somebody looks: rendering is nearly all that a step of RoboMME costs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from predimem.envs.robomme.robot import CAMERAS


class Shutter:
    """Stands between a simulation and its cameras. While it is shut the last images hold.

    RoboMME asks its cameras for depth and for segmentation as well, from which it fills pixels into the words of a
    subgoal. Nobody here reads those words, so that colours alone are read from the cameras. Physics and success do not
    depend on images.

    open: take images whenever the simulation asks for some. every: while it is open, only each so many-th time.
    on_ask: called whenever the simulation asks, which it does once at each of its steps.
    """

    def __init__(self, simulation: Any, every: int = 1):
        """simulation: the unwrapped ManiSkill environment. Its cameras are this one's from now on."""
        self._simulation, self._stock = simulation, simulation._get_obs_sensor_data
        self.open, self.every = True, every
        self.on_ask: Callable[[], object] = lambda: None
        self._asked = 0
        self._last: dict[str, Any] | None = None
        visual = simulation.obs_mode_struct.visual
        visual.depth = visual.segmentation = False
        simulation._get_obs_sensor_data = self._ask

    def look(self) -> None:
        """Take images now."""
        self._last = self._stock()

    def images(self) -> dict[str, Any]:
        """camera -> uint8 [H, W, 3], as they were taken last."""
        assert self._last is not None
        return {name: self._last[name]["rgb"][0].cpu().numpy() for name in CAMERAS}

    def _ask(self, apply_texture_transforms: bool = True) -> dict[str, Any]:
        self.on_ask()
        due = self.open and self._asked % self.every == 0
        self._asked += 1
        images = self._last
        if images is None or due:
            images = self._last = self._stock(apply_texture_transforms)
        return images
